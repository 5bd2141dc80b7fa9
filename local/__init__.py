"""Runs the module on this machine: an AWS emulator, Terraform against it, and the demo."""
