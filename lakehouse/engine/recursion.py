"""How far a query that names itself may go, in both engines, and what a row that goes further fails with."""

MOST_STEPS = 100
TOO_MANY = f"a recursion takes more than {MOST_STEPS} steps"
