"""When things are due: schedules in words, as intervals and as cron expressions, in a time zone. It runs nothing."""
