"""What pages are made of: charts with their tables and files, steps with their texts, jobs with progress and stop."""
