"""Automatic maintenance: observe tables, plan within a budget, act, and record evidence."""
