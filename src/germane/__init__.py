"""Tells you, minutes after it happens, that your production RAG has stopped answering the question."""
