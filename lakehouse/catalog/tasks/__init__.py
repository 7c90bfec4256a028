"""The task queue of the table service, and the plan counts by which it weighs gains."""
