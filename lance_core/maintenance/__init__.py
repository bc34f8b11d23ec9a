"""Tables that look after themselves: observe, plan within a budget, act, and leave evidence."""
