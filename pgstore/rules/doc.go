// SPDX-License-Identifier: Apache-2.0

// Package rules keeps policies in PostgreSQL tables. Operators edit them with SQL or with the command mete rules,
// and all servers follow the changes. [Source.Load] compiles the tables into a policy, [Source.Watch] reports
// changes, and [Source.Edit] makes them.
//
// # Tables
//
// A row of rate_limit_rule is a rule. Its column spec is the rule as a JSON object, in the same form as in a
// policy file (see package policy). For convenience, other columns contain parts of spec: name, key_pattern,
// plan, rate_per_second, burst_capacity, description, window_tokens and window_length. A trigger copies a column
// that a statement sets into spec, and then sets the columns from spec. An INSERT without a name gets a name made
// of key_pattern and plan. These columns are not in spec:
//
//	is_active    false excludes the row from the policy
//	priority     the rules are in ascending order of priority, then of rule_id
//	policy       the policy of the rule
//	is_fallback  the row is the fallback_limit of its policy
//
// The column scope has no effect on decisions. The database maintains rule_id, version, created_at and
// updated_at. Constraints reject invalid rows: bad rates, bursts, patterns, scopes and names, and an INSERT with
// contradicting spec and columns. A rate must be positive and finite, and a burst at least 1. Constraints also
// reject a second active rule with the same limit_keys and match, unless group, mode or on_missing in spec
// differ.
//
// All rows that match a request apply to it, whatever their limit_keys, as if each had its own group. Rows with
// the same group are tiers: only the first match applies.
//
// A row of rate_limit_policy holds the other fields of a policy in spec: selector, mode, slot_by, headers, jitter
// and description. The row with the empty name has the fields of a file that apply to all policies: overrides,
// kill_switches, global_shadow, break_glass, prices and tests.
//
// A key_pattern is global, for one shared bucket, or a list of parts that are joined by colons:
//
//	{NAME}        requests with equal values of an attribute share a bucket
//	LABEL:{NAME}  the same; the label is a comment
//	LABEL:VALUE   matches only requests with this value of the attribute, or with this
//	              prefix if it ends in a star. No colons, braces or spaces
//
// NAME and LABEL are lower-case words from rate_limit_attribute, which maps them to attributes. They can also be
// attributes themselves: {header:x-user}, {path}, or {attribute:shelf} for an attribute that an embedding program
// supplies. For example, endpoint:/api/search:user:{user_id} is a bucket per user for requests to that path. The
// word custom stands for limit_keys that no pattern can express.
//
// Initially, rate_limit_attribute maps ip, endpoint (the path), user and user_id (jwt:sub), plan, tenant and
// api_key. An UPDATE of the table changes spec of all rules with that word in their pattern or plan.
//
// # Changes
//
// Each statement that changes these tables increments the revision in rate_limit_revision, and notifies the
// channel named after the schema. A policy is read at one revision, which becomes its [policy.Matcher.Version].
// Invalid rows cause an [Errors] that lists the row and location of each error. A table without an active rule is
// an error, too, like an empty file.
//
// # Policy files
//
// [Set.Import] converts a policy file to rows, and [Set.Export] converts rows to a policy file. Rows and file
// make the same decisions. The import of an export changes no row. [DroppedFields] lists the fields of a file that rows
// do not keep.
package rules
