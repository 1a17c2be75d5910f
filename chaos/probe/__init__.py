"""What runs inside the target, without any change to it. The folder `inject` is put on the target's PYTHONPATH.

Nothing here imports the rest of the project, and the rest imports nothing of it but its place.
"""
