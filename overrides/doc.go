// SPDX-License-Identifier: Apache-2.0

// Package overrides keeps exceptions from a policy that are made while it is in
// force: block an abuser, let somebody through, hold somebody to another limit, have
// all rules only watch, or let everything pass. Each has a reason, an author and an
// end. What they do, and which goes before which, is said in package policy: see
// [policy.Override].
//
// A [Manager] stands between who loads the policy and who decides by it:
//
//	m, err := overrides.New(base, overrides.Config{Documents: store, Apply: limiter.SetPolicy})
//	err = m.Load(ctx)   // what was made before is in force again
//	go m.Follow(ctx)    // and what others make, within about a second
//	err = m.Base(next)  // a new policy: the overrides stay
//	made, err := m.Put(ctx, policy.Override{Action: policy.ActionBlock, …})
//	err = m.Remove(ctx, made.ID, "kim", "it was a test of theirs")
//
// A request is decided by all overrides as they were before a change, or by all as
// they are after it.
//
// What was done to a bucket by its key is no override, but can be remembered beside
// what was done to those:
//
//	noted, err := m.Note(ctx, overrides.Entry{What: overrides.WhatReset, Key: key, Tokens: "5", Author: "kim", …})
//
// # Where they are
//
// They are in one document of a store ([store.Documents]) that several processes
// share, with the list of what was done. A change is one step for both: of two who
// change something at once, the second does so on top of the first. Where the store
// does not answer there is no change, and what was last read stays in force. Where
// it has lost the document, or the latest of it, a manager that had read it writes it
// back. Without a store they are kept in the process alone.
//
// An override of [Manager.PutLocal] is in one process alone. It needs no store, lasts an hour at
// most, and is for the emergency in which the store is down.
//
// # When the policy changes
//
// An override that does not fit the new policy, because the rule that it names is
// gone, say, is no mistake of the policy: it stays in the document, is not in force,
// and is in force again once it fits. [Manager.List] says why it does not.
//
// # What is remembered
//
// Everything that is done is remembered with its time, author and reason, and what
// was there before and after: the last [MaxEntries] of that, or fewer where they do
// not fit into the document. At most [MaxActs] of them are what was done to buckets.
// That an override expired is remembered, too; it is listed for [Keep] longer.
// Matches and keys can hold secrets: they are in the document, and never in logs.
package overrides
