// SPDX-License-Identifier: Apache-2.0

// Package overrides manages exceptions from an active policy. Exceptions block or exempt clients, replace a limit, put
// all rules in shadow mode, or suspend all limits. Each override has a reason, an author and an expiry time.
// [policy.Override] describes the actions and their precedence.
//
// A [Manager] stands between the policy loader and the limiter:
//
//	m, err := overrides.New(base, overrides.Config{Documents: store, Apply: limiter.SetPolicy})
//	err = m.Load(ctx)      // activates stored overrides
//	go m.Follow(ctx)       // follows changes of other processes within about a second
//	err = m.SetBase(next)  // replaces the policy and keeps the overrides
//	made, err := m.Put(ctx, policy.Override{Action: policy.ActionBlock, …})
//	err = m.Remove(ctx, made.ID, "kim", "the customer ran a load test")
//
// A request is decided either by all overrides before a change or by all overrides after it.
//
// The audit also records acts on buckets:
//
//	noted, err := m.Note(ctx, overrides.Entry{What: overrides.EntryReset, Key: key, Tokens: "5", Author: "kim", …})
//
// # Storage
//
// The overrides and the audit are in one document of a store ([store.Documents]) that several processes share. A
// change updates both atomically; the second of two concurrent changes builds on the first. While the store does
// not answer, changes fail, and the last known overrides stay active. If the store loses the document or
// its latest revision, a manager that has read it writes it to the store again. Without a store, the overrides are
// kept only in the process.
//
// [Manager.PutLocal] creates an override in one process only. It needs no store and lasts at most one hour. It is
// for emergencies in which the store is down.
//
// # Policy changes
//
// An override may not fit a new policy, for example because its rule is gone. The policy is activated nevertheless.
// The override stays in the document, inactive until it fits again. [Manager.List] reports the reason.
//
// # Audit
//
// The audit records every change with its time, author, reason, and the override before and after it. It keeps the
// last [MaxEntries] entries, or fewer if they do not fit into the document; at most [MaxActs] of them are acts on
// buckets. It also records expirations. An expired override stays in the list for [KeepExpired]. Matches and keys can
// contain secrets: they are in the document, but never in logs.
package overrides
