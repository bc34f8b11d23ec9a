"""Columns that are declared once and kept true: the declaration, the evidence beside each value, and the refresh.

A declaration says how a column is computed from others. Evidence says, for each row, what the value was computed from; it
travels with the row, whoever moves it. A refresh computes the rows whose evidence does not fit what they hold now.
"""
