// SPDX-License-Identifier: Apache-2.0

// Package rules keeps policies in PostgreSQL: tables that people edit with SQL, or
// with mete rules, and that all servers follow. [Source.Load] makes a policy of them,
// [Source.Watch] reports their changes, [Source.Edit] changes them.
//
// # Tables
//
// A row of rate_limit_rule is a rule. Its column spec is the rule as a JSON object,
// exactly as a policy file has it (see package policy). Other columns have parts of
// spec for people: name, key_pattern, plan, rate_per_second, burst_capacity,
// description, window_tokens and window_length. A trigger writes a column that a
// statement sets into spec, and sets the columns by spec. An INSERT without a name
// gets one made of key_pattern and plan. These columns are not in spec:
//
//	is_active    false: the row is no part of the policy
//	priority     the rules are in ascending order of it, and then of rule_id
//	policy       the policy of the rule
//	is_fallback  the row is the fallback_limit of its policy
//
// scope is for people; rule_id, version, created_at and updated_at are kept by the
// database. The constraints refuse a row that is wrong by itself: rates that are no
// finite number above 0, bursts below 1, broken patterns, scopes and names, an INSERT
// whose spec and columns disagree, and a second active rule with the same limit_keys
// and match, unless group, mode or on_missing in spec set it apart.
//
// Rows apply together: all that match a request, whatever their limit_keys, as they
// would with a group of their own. Rows with the same group are tiers, of which the
// first that matches applies.
//
// A row of rate_limit_policy is what a policy says beside its rules, in spec: selector,
// mode, slot_by, headers, jitter and description. The row with the empty name has the
// fields of a file that are about all policies: overrides, kill_switches,
// global_shadow, break_glass and tests.
//
// A key_pattern is global, one bucket for all, or parts that are joined by colons:
//
//	{NAME}        requests with equal values of an attribute share a bucket
//	LABEL:{NAME}  the same; the label is for people
//	LABEL:VALUE   only requests count whose attribute has this value, or one that
//	              begins so if it ends in a star. In it are no colons, braces or spaces
//
// NAME and LABEL are lower-case words of rate_limit_attribute, which has the attributes
// that they stand for, or attributes themselves: {header:x-user}, {path},
// {attribute:shelf} for one that only an embedding program knows. So
// endpoint:/api/search:user:{user_id} is a bucket for each user, of requests for that
// path. The word custom stands for limit_keys that no pattern can say.
//
// rate_limit_attribute has ip, endpoint (the path), user and user_id (jwt:sub), plan,
// tenant and api_key to begin with. An UPDATE of it changes spec of all rules whose
// pattern or plan has the word.
//
// # Changes
//
// Every statement that changes these tables adds one to the revision in
// rate_limit_revision, and notifies the channel that has the schema's name. A policy
// is read at one revision, as a whole, and is [policy.Matcher.Version] of it. Rows
// that are no policy are an [Errors], which names each row and place; so is a table
// without an active rule, as an empty file is.
//
// # Policy files
//
// [Set.Import] makes rows of a policy file, [Set.Export] a policy file of rows. Rows
// and file decide alike, in either direction. The import of an export changes no row.
// [LeftOut] names the fields of a file that rows do not keep.
package rules
