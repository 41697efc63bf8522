// SPDX-License-Identifier: Apache-2.0

// Package rules keeps policies in PostgreSQL: tables that people edit with SQL, or
// with mete rules, and that all servers follow. [Source.Load] makes a policy of them,
// [Source.Watch] says when they have changed, [Source.Edit] changes them.
//
// # Tables
//
// A row of rate_limit_rule is a rule. These columns say what the fields of a rule in
// a policy file do (see package policy):
//
//	name             name. Where an INSERT gives none it is made of key_pattern and plan
//	key_pattern      limit_keys, and a part of match: see below
//	plan             match on the attribute that plan stands for; NULL is none
//	rate_per_second  rps, and
//	burst_capacity   burst, of a token_bucket. Both, or both are NULL: then the limit
//	                 is in spec, as algorithm_config or limits
//	is_active        false: the row is no part of the policy
//	description      description
//	spec             all other fields, as a JSON object: match, group, mode, on_missing,
//	                 on_store_error, deadline, slot_by, headers, jitter, algorithm,
//	                 algorithm_config and limits; and policy and fallback, see below.
//	                 None that a column says; in algorithm_config there may be others
//	                 beside the rate and burst of the columns
//	priority         the rules are in ascending order of it, and then of rule_id
//
// scope is for people; rule_id, version, created_at and updated_at are kept by the
// database. The constraints refuse what one row can show to be wrong by itself: rates
// that are no finite number above 0, bursts below 1, patterns, scopes and names that
// are none, a limit that is said twice, and a second active rule of one key_pattern
// and plan (NULL counts as one), unless match, group, mode or on_missing in spec set
// it apart.
//
// Rows are apart from each other: all that match a request apply, together, whatever
// their keys, as they would with a group of their own. Rows with the same group in
// spec are tiers, of which the first that matches applies.
//
// A row with fallback: true in spec is the fallback_limit of the policy that its policy
// in spec names, or else of the policy "rules": it applies where no other row of that
// does, and is of no group. Its match, which may be on path, method and host, is the
// selector of the policy, and must take in what the other rows of it do. There is no
// other difference between policies, and no other selector: rows have it in their match.
//
// A key_pattern is global, one bucket for all, or parts that are joined by colons:
//
//	{NAME}        requests with equal values of an attribute share a bucket
//	LABEL:{NAME}  the same; the label is for people
//	LABEL:VALUE   only requests count whose attribute has this value, or one that
//	              begins so if it ends in a star. In it are no colons, braces or spaces
//
// NAME and LABEL are lower-case words of rate_limit_attribute, which says what
// attributes they stand for, or attributes themselves: {header:x-user}, {path},
// {attribute:shelf} for one that only an embedding program knows. So
// endpoint:/api/search:user:{user_id} is a bucket for each user, of requests for that
// path. The word custom stands for a pattern that cannot be written: limit_keys are in
// spec then.
//
// rate_limit_attribute has ip, endpoint (the path), user and user_id (jwt:sub), plan,
// tenant and api_key to begin with. Who changes it changes what all rules mean.
//
// # Changes
//
// Every statement that changes these tables adds one to the revision in
// rate_limit_revision, and notifies the channel that has the schema's name. A policy
// is read at one revision, as a whole, and is [policy.Matcher.Version] of it. Rows
// that are no policy are an [Errors], which names each row and column; so is a table
// without an active rule, as an empty file is.
//
// # Policy files
//
// [Set.Import] makes rows of a policy file, [Set.Export] a policy file of rows. Rows
// and file have the same rules, limits, keys and decisions, in either direction. The
// import of an export changes no row, unless it names a group that makes no
// difference; a second export is the same to the byte. A file may lose its form: the
// shape of a bundle, with its version and times, and the ids of policies without a
// fallback_limit; the descriptions and tests of policies; selector, mode, slot_by,
// headers and jitter of a policy, which become those of its rules; tiers, which become
// groups; defaults that are spelled out. [LeftOut] says what is not kept. What would
// make a difference, overrides and the like, is refused.
package rules

// The table that a [Mistake] may be in instead of rate_limit_rule.
const attributeTable = "rate_limit_attribute"
