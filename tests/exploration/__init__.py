"""Explores the real handler code over models of the AWS services that it calls."""
