"""The roles of pipelines and operations. tests/fixtures/roles shows their policies."""

from __future__ import annotations

from tests.plan.rights import (
    ALWAYS,
    GIVEN_KEY,
    GIVEN_PARAMETER,
    GIVEN_SECRET,
    GIVEN_TOPIC,
    GIVEN_VPC,
    JOIN_VPC,
    LOG_AND_TRACE,
    OWN_CODE,
    OWN_TABLES,
    USES_A_TABLE,
    On,
    Right,
    Role,
    key_rights,
    queue_rights,
)
from tests.plan.workflow_roles import GUARD, STARTER, STATE_MACHINE

_MARKS = "`BatchExecuteStatement`: UPDATE marks rows as sent"
_OWN_PLAN = "in a plan of your own: `TransactWriteItems`"
_PERMISSIONS = "tests/e2e/test_permissions.py::test_without_"
_RECONCILER = "tests/e2e/test_reconciler.py::test_without_"
_ONE_OF_ITS_RIGHTS = f"{_RECONCILER}one_of_its_rights_a_row_stays_pending_and_counts_as_stale"
_NO_COMMIT = f"{_PERMISSIONS}put_item_nothing_is_committed"
_OPERATIONS = "tests/e2e/test_operations.py::test_without_"

PIPELINE = Role(
    "The pipeline's function",
    'module.pipeline["{}"].module.function.data.aws_iam_policy_document.worker',
    {
        ALWAYS: (
            *queue_rights(
                "tests/e2e/test_backoff.py::"
                "test_without_the_right_to_hide_it_a_message_comes_back_after_the_queues_timeout",
                f"{_PERMISSIONS}send_message_poison_stays_in_the_queue",
            ),
            Right(
                "dynamodb:PutItem",
                On.LEDGER,
                "`TransactWriteItems`: the ledger row; `PutItem` of superseded events",
                _NO_COMMIT,
            ),
            Right("dynamodb:PutItem", On.BUSINESS, "`TransactWriteItems`: the business row", _NO_COMMIT),
            Right(
                "dynamodb:BatchGetItem",
                On.LEDGER,
                "`BatchGetItem`: what was decided before",
                f"{_PERMISSIONS}batch_get_item_a_row_in_the_way_is_not_judged",
            ),
            Right(
                "dynamodb:PartiQLUpdate",
                On.LEDGER,
                _MARKS,
                f"{_PERMISSIONS}partiql_update_an_announced_event_stays_pending",
            ),
            *LOG_AND_TRACE,
        ),
        GIVEN_TOPIC: (
            Right(
                "sns:Publish",
                On.TOPIC,
                "`PublishBatch`",
                f"{_PERMISSIONS}publish_a_committed_event_stays_pending",
            ),
        ),
        GIVEN_KEY: key_rights(
            f"reading the queue, {USES_A_TABLE}, sending to the dead-letter queue, publishing",
            f"sending to the dead-letter queue, publishing, {USES_A_TABLE}",
        ),
        GIVEN_VPC: JOIN_VPC,
        OWN_CODE: (
            Right("dynamodb:ConditionCheckItem", On.BUSINESS, f"`Check` {_OWN_PLAN}"),
            Right("dynamodb:DeleteItem", On.BUSINESS, f"`Delete` {_OWN_PLAN}"),
            Right("dynamodb:UpdateItem", On.BUSINESS, f"`Update` {_OWN_PLAN}"),
        ),
        OWN_TABLES: (
            Right("dynamodb:ConditionCheckItem", On.OWN_TABLES, f"`Check` {_OWN_PLAN}"),
            Right("dynamodb:DeleteItem", On.OWN_TABLES, f"`Delete` {_OWN_PLAN}"),
            Right("dynamodb:PutItem", On.OWN_TABLES, f"`Put` {_OWN_PLAN}"),
            Right(
                "dynamodb:UpdateItem",
                On.OWN_TABLES,
                f"`Update` {_OWN_PLAN}",
                "tests/e2e/test_examples.py::test_stock_stores_no_order_without_the_right_to_update_its_own_table",
            ),
        ),
    },
    {
        "default": [GIVEN_TOPIC],
        "key": [GIVEN_TOPIC, GIVEN_KEY],
        "no_topic": [],
        "own_code": [GIVEN_TOPIC, OWN_CODE, OWN_TABLES],
        "own_layer": [GIVEN_TOPIC, OWN_CODE],
        "shipped_code_by_name": [GIVEN_TOPIC],
        "vpc": [GIVEN_TOPIC, GIVEN_VPC],
    },
)

RECONCILER = Role(
    "The reconciler's function",
    'module.pipeline["{}"].module.reconciler[0].module.function.data.aws_iam_policy_document.worker',
    {
        ALWAYS: (
            Right(
                "dynamodb:Query",
                On.PENDING,
                "`Query`: the pending rows of a shard, oldest first",
                f"{_RECONCILER}the_right_to_query_a_run_fails",
            ),
            Right(
                "dynamodb:BatchGetItem",
                On.LEDGER,
                "`BatchGetItem`: whether they still are, and what to publish",
                _ONE_OF_ITS_RIGHTS,
            ),
            Right("dynamodb:PartiQLUpdate", On.LEDGER, _MARKS, _ONE_OF_ITS_RIGHTS),
            *LOG_AND_TRACE,
        ),
        GIVEN_TOPIC: (Right("sns:Publish", On.TOPIC, "`PublishBatch`", _ONE_OF_ITS_RIGHTS),),
        GIVEN_KEY: key_rights(f"{USES_A_TABLE}, publishing", f"publishing, {USES_A_TABLE}"),
        GIVEN_VPC: JOIN_VPC,
    },
    {
        "default": [GIVEN_TOPIC],
        "key": [GIVEN_TOPIC, GIVEN_KEY],
        "no_topic": [],
        "own_code": [GIVEN_TOPIC],
        "own_layer": [GIVEN_TOPIC],
        "shipped_code_by_name": [GIVEN_TOPIC],
        "vpc": [GIVEN_TOPIC, GIVEN_VPC],
    },
)

SCHEDULE = Role(
    "The reconciler's schedule",
    'module.pipeline["{}"].module.reconciler[0].data.aws_iam_policy_document.schedule',
    {ALWAYS: (Right("lambda:InvokeFunction", On.RECONCILER, "the schedule runs the reconciler"),)},
    dict.fromkeys(RECONCILER.variants, ()),
)

OPERATION = Role(
    "The operation's function",
    'module.operation["{}"].module.function.data.aws_iam_policy_document.worker',
    {
        ALWAYS: (
            *queue_rights(
                f"{_OPERATIONS}the_right_to_hide_it_an_order_comes_back_after_the_queues_timeout",
                f"{_OPERATIONS}send_message_an_order_that_makes_no_sense_stays_in_the_queue",
            ),
            Right(
                "dynamodb:UpdateItem",
                On.LEDGER,
                "`UpdateItem` claims, completes, fails and parks; the row it finds comes with its answer",
                f"{_OPERATIONS}update_item_nothing_is_charged",
            ),
            *LOG_AND_TRACE,
        ),
        GIVEN_SECRET: (
            Right(
                "secretsmanager:GetSecretValue",
                On.SECRET,
                "`GetSecretValue`: what the provider knows the caller by",
                f"{_OPERATIONS}its_secret_nothing_is_charged",
            ),
        ),
        GIVEN_PARAMETER: (
            Right(
                "ssm:GetParameter",
                On.PARAMETER,
                "`GetParameter`: what the provider knows the caller by",
                f"{_OPERATIONS}its_secret_nothing_is_charged",
            ),
        ),
        GIVEN_KEY: key_rights(
            f"reading the queue, {USES_A_TABLE}, sending to the dead-letter queue",
            f"sending to the dead-letter queue, {USES_A_TABLE}",
        ),
        GIVEN_VPC: JOIN_VPC,
    },
    {
        "http": [],
        "key": [GIVEN_KEY],
        "own_code": [],
        "parameter": [GIVEN_PARAMETER],
        "secret": [GIVEN_SECRET],
        "vpc": [GIVEN_VPC],
    },
)

ROLES = (PIPELINE, RECONCILER, SCHEDULE, OPERATION, STARTER, GUARD, STATE_MACHINE)
