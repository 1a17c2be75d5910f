"""What a reader gets to see of a campaign: the JSON object, and the report and progress lines on a terminal.

Nothing is judged here: reports consume the verdict's records and add explanations.
"""
