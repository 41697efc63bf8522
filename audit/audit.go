// SPDX-License-Identifier: Apache-2.0

// Package audit records what administrators do: in a log, in the memory of the server,
// and, for changes of single buckets, in the audit that servers with one store share.
//
// Package httpapi calls it. A front door of your own calls [Log.Begin] for each request
// that changes something, and [Action.End] after it.
package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/overrides"
)

// MaxActions is the number of actions that a [Log] keeps and lists. The log has all.
const MaxActions = 200

// A Caller is the sender of a request.
type Caller struct {
	Name string // of the token; empty without a token
	From string // the address; of IPv6, its network
}

// Config configures a [Log]. Caller and Logger are required.
type Config struct {
	// Caller identifies the sender of a request. It returns false if the action is not to
	// be recorded: callers without a token must not fill the log. It must be safe for
	// concurrent use.
	Caller func(*http.Request) (Caller, bool)

	// Logger gets a line for each action. No line has the key of a bucket, only its mask.
	Logger *slog.Logger

	// Overrides, if set, keeps the audit that servers with one store share.
	Overrides *overrides.Manager

	// NoteTimeout is the longest time that an answer waits for the shared audit. If zero,
	// 5 seconds.
	NoteTimeout time.Duration

	// Now is the clock of the actions. If nil, the wall clock.
	Now func() bucket.Instant
}

// A Log records actions. It is safe for concurrent use. A nil Log records nothing.
type Log struct {
	config Config

	mu   sync.Mutex // guards the fields below
	ring [MaxActions]remembered
	next int // the number of actions so far
}

// A remembered is an action at this server.
type remembered struct {
	api.Activity
	entry string // the ID of its entry in the shared audit; empty if it has none
}

// New returns an empty log.
func New(config Config) (*Log, error) {
	if config.Caller == nil || config.Logger == nil {
		return nil, errors.New("audit: new: Caller and Logger are required")
	}
	if config.NoteTimeout == 0 {
		config.NoteTimeout = 5 * time.Second
	}
	if config.Now == nil {
		config.Now = func() bucket.Instant { return bucket.At(time.Now()) }
	}
	return &Log{config: config}, nil
}

// An Action is a request that changes something. A nil Action records nothing. It must be
// used by one goroutine at a time.
type Action struct {
	log     *Log
	request *http.Request
	what    string
	role    string
	key     string
	masked  string // the key as the log shows it
	reason  string
	rule    string          // whose buckets are all reset
	noted   overrides.Entry // without an ID if the shared audit has none
}

// Begin returns the action of a request. What is its name in the log, such as
// "bucket/reset", and role is the caller's.
func (l *Log) Begin(r *http.Request, what, role string) *Action {
	if l == nil {
		return nil
	}
	return &Action{log: l, request: r, what: what, role: role}
}

// About sets the bucket that the action is about, and the reason of the caller. The log
// shows the masked key.
func (a *Action) About(key, masked, reason string) {
	if a != nil {
		a.key, a.masked, a.reason = key, masked, reason
	}
}

// AboutRule sets the rule whose buckets are all reset, and the reason of the caller.
func (a *Action) AboutRule(rule, reason string) {
	if a != nil {
		a.rule, a.reason = rule, reason
	}
}

// Cleared writes into the shared audit that buckets of the rule were reset, as [Action.Changed]
// does. The other servers drop their memory of the rule when they read it, so the entry is
// written for 0 buckets, too. A caller without a name is shown as "-".
func (a *Action) Cleared(buckets int64) {
	if a == nil || a.log.config.Overrides == nil {
		return
	}
	caller, _ := a.log.config.Caller(a.request)
	a.note(overrides.Entry{
		What: overrides.WhatCleared, Rule: a.rule, Buckets: buckets, Reason: a.reason, Author: cmp.Or(caller.Name, "-"), Role: a.role, From: caller.From,
	}, "rule", a.rule, "buckets", buckets)
}

// Changed writes a change of the bucket into the shared audit, and waits for that until
// the timeout. A failure to write is logged, and the change stays in the memory of this
// server. Nothing is written for 0 tokens, or for a caller without a name.
func (a *Action) Changed(what overrides.What, tokens bucket.Tokens) {
	if a == nil || tokens <= 0 || a.log.config.Overrides == nil {
		return
	}
	caller, _ := a.log.config.Caller(a.request)
	if caller.Name == "" {
		return
	}
	a.note(overrides.Entry{
		What: what, Key: a.key, Tokens: json.Number(tokens.String()), Reason: a.reason, Author: caller.Name, Role: a.role, From: caller.From,
	}, "key", a.masked, "tokens", tokens.String())
}

// note writes an entry into the shared audit. The fields describe it in the log.
func (a *Action) note(e overrides.Entry, fields ...any) {
	// A client that hangs up does not undo the change.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.request.Context()), a.log.config.NoteTimeout)
	defer cancel()
	var err error
	if a.noted, err = a.log.config.Overrides.Note(ctx, e); err != nil {
		a.log.config.Logger.Error("change of a bucket may be missing in the audit of other servers",
			append([]any{"what", whats[e.What], "by", e.Author}, append(fields, "err", err)...)...)
	}
}

// End records the action with the status of its answer. Status 0 is a handler that
// panicked. The log has nothing else of the request than the name of the action, the masked
// key and the reason.
func (a *Action) End(status int) {
	if a == nil {
		return
	}
	caller, record := a.log.config.Caller(a.request)
	if !record {
		return
	}
	fields := []any{"what", a.what, "by", caller.Name, "role", a.role, "from", caller.From, "status", status}
	if a.key != "" {
		fields = append(fields, "key", a.masked, "reason", a.reason)
	}
	if a.rule != "" {
		fields = append(fields, "rule", a.rule, "reason", a.reason)
	}
	a.log.config.Logger.Info("admin request", fields...)
	if caller.Name == "" {
		return
	}
	one := remembered{api.Activity{
		At: a.log.config.Now().Time(), What: a.what, By: caller.Name, Role: a.role, From: caller.From, Status: status, Key: a.key, Reason: a.reason, Rule: a.rule,
	}, a.noted.ID}
	if one.entry != "" { // as other servers show it
		one.At, one.Key = a.noted.At, a.noted.Key
	}
	a.log.add(one)
}

func (l *Log) add(one remembered) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ring[l.next%MaxActions] = one
	l.next++
}

// List returns the actions at this server, and the changes of buckets at any server with
// the same store: each once, the newest first by the clocks of the servers, with true keys.
func (l *Log) List() []api.Activity {
	if l.config.Overrides == nil {
		return l.merge(nil)
	}
	return l.merge(l.config.Overrides.Audit())
}

// merge returns the actions of this server and those of the shared audit.
func (l *Log) merge(audit []overrides.Entry) []api.Activity {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := map[string]bool{}
	var list []api.Activity
	for i := range min(l.next, MaxActions) {
		one := &l.ring[(l.next-1-i)%MaxActions]
		own[one.entry] = true
		list = append(list, one.Activity)
	}
	for _, e := range slices.Backward(audit) {
		if what := whats[e.What]; what != "" && !own[e.ID] { // the audit has only what was done
			list = append(list, api.Activity{At: e.At, What: what, By: e.Author, Role: e.Role, From: e.From, Status: http.StatusOK, Key: e.Key, Reason: e.Reason, Rule: e.Rule})
		}
	}
	slices.SortStableFunc(list, func(a, b api.Activity) int { return b.At.Compare(a.At) })
	return list[:min(len(list), MaxActions)]
}

// whats are the names in the log of changes of buckets.
var whats = map[overrides.What]string{overrides.WhatReset: "bucket/reset", overrides.WhatTaken: "bucket/take", overrides.WhatCleared: "rules/reset"}
