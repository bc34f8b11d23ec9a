"""Manifest stores outside the table: DynamoDB, SQL."""
