"""What an operator has done wrong or may not do, in one line that says what to do."""

from __future__ import annotations

import sqlite3
import traceback
from pathlib import Path

import click
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,
    CredentialRetrievalError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
    TokenRetrievalError,
)
from botocore.parsers import ResponseParserError

BAD_INPUT = 2

_NO_CREDENTIALS = (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError, TokenRetrievalError)
_DENIED = ("AccessDenied", "AccessDeniedException", "AuthorizationError", "AuthorizationErrorException")
_NOT_SIGNED_IN = (
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
)
_NO_SUCH_RESOURCE = (
    "AWS.SimpleQueueService.NonExistentQueue",
    "QueueDoesNotExist",
    "ResourceNotFoundException",
    "StateMachineDoesNotExist",
)


class CommandError(click.ClickException):
    """Bad input, a missing right or a missing resource; ends the command with exit code 2."""

    exit_code = BAD_INPUT

    def format_message(self) -> str:
        return " ".join(self.message.split())


def explain(error: Exception) -> CommandError:
    """What has ended a command as one line that says what to do."""
    if isinstance(error, _NO_CREDENTIALS):
        return CommandError("no AWS credentials were found: sign in, or name a profile with --profile")
    if isinstance(error, ProfileNotFound):
        return CommandError(f"{error}: `aws configure list-profiles` shows those that exist")
    if isinstance(error, NoRegionError):
        return CommandError("no AWS Region is set: name the consumer's with --region")
    if isinstance(error, EndpointConnectionError | ConnectionError | HTTPClientError):
        return CommandError(f"AWS cannot be reached ({error}): check --endpoint-url, --region and the network")
    if isinstance(error, ClientError):
        return _explain_refusal(error)
    if isinstance(error, ResponseParserError):
        return CommandError("the answer is none of AWS's: check --endpoint-url")
    if isinstance(error, BotoCoreError):
        return CommandError(f"the AWS call failed: {error}")
    if isinstance(error, sqlite3.Error):
        return CommandError(f"no room in the temporary folder, it seems ({error}): name another by SQLITE_TMPDIR")
    if isinstance(error, BrokenPipeError):
        return CommandError("nobody reads the output any more, so the command has ended")
    if isinstance(error, OSError):
        return CommandError(f"{error}: see whether the disk is full, or the file may be written")
    return CommandError(f"an error of this program, please report it: {type(error).__name__} at {_place(error)}")


def _place(error: Exception) -> str:
    """Where an error was raised. Its text may quote data."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "an unknown place"


def _explain_refusal(error: ClientError) -> CommandError:
    code = str(error.response.get("Error", {}).get("Code", "Unknown"))
    text = str(error.response.get("Error", {}).get("Message", ""))
    operation = error.operation_name
    if code in _DENIED:
        return CommandError(f"you may not call {operation}: {text} Ask for this right, or use another --profile")
    if code in _NOT_SIGNED_IN:
        return CommandError(f"AWS does not accept your credentials ({code}): sign in again, or use another --profile")
    if code in _NO_SUCH_RESOURCE:
        return CommandError(f"{operation} found nothing ({text}): check --name, --region and --profile")
    return CommandError(f"{operation} was refused with {code}: {text}")
