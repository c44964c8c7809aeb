"""Streamlit runs the scripts in this folder; pytest leaves them alone."""

collect_ignore_glob = ["*.py"]
