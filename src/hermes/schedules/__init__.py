"""Schedules in words, as intervals and as cron expressions, in a time zone. Computes when jobs
are due; runs nothing.
"""
