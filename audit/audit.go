// SPDX-License-Identifier: Apache-2.0

// Package audit records the changes that administrators make. It writes them to a log and keeps the last ones in
// memory. Changes to single buckets also go to the audit log that servers with one store share.
//
// Package httpapi calls it. A program with its own admin endpoints calls [Log.Begin] for each request that
// changes something, and [Action.End] after it.
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

// MaxActions is the number of actions that a [Log] keeps in memory. The log file has all of them.
const MaxActions = 200

// A Caller is the sender of a request.
type Caller struct {
	Name string // name of the token; empty without a token
	From string // IPv4 address or IPv6 network
}

// Config configures a [Log]. Caller and Logger are required.
type Config struct {
	// Caller identifies the sender of a request. It returns false if the action must not be recorded, because
	// callers without a token must not flood the log. It must be safe for concurrent use.
	Caller func(*http.Request) (Caller, bool)

	// Logger gets a line per action. Lines contain masked keys only.
	Logger *slog.Logger

	// Overrides, if not nil, stores the audit log that servers with one store share.
	Overrides *overrides.Manager

	// NoteTimeout bounds how long a response waits for the shared audit log. Zero means 5 seconds.
	NoteTimeout time.Duration

	// Now is the clock of the actions. If nil, it is the wall clock.
	Now func() bucket.Instant
}

// A Log records actions. It is safe for concurrent use. A nil Log records nothing.
type Log struct {
	config Config

	mu   sync.Mutex // guards the fields below
	ring [MaxActions]record
	next int // the number of actions so far
}

type record struct {
	api.Activity
	entry string // ID of its entry in the shared audit log, if any
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

// An Action is a request that changes something. A nil Action records nothing. It is not safe for concurrent use.
type Action struct {
	log     *Log
	request *http.Request
	what    string
	role    string
	key     string
	masked  string // the key as the log shows it
	reason  string
	rule    string          // rule whose buckets are all reset
	noted   overrides.Entry // entry in the shared audit log; no ID if there is none
}

// Begin starts the action of a request with a name for the log, such as "bucket/reset", and the caller's role.
func (l *Log) Begin(r *http.Request, what, role string) *Action {
	if l == nil {
		return nil
	}
	return &Action{log: l, request: r, what: what, role: role}
}

// SetBucket sets the bucket of the action and the caller's reason. The log shows the masked key.
func (a *Action) SetBucket(key, masked, reason string) {
	if a != nil {
		a.key, a.masked, a.reason = key, masked, reason
	}
}

// SetRule sets the rule that is reset, and the caller's reason.
func (a *Action) SetRule(rule, reason string) {
	if a != nil {
		a.rule, a.reason = rule, reason
	}
}

// RecordRuleReset writes the reset of the rule to the shared audit log, like [Action.RecordChange]. Other servers drop their
// cached decisions for the rule when they read the entry, so it is written for 0 buckets too. A caller without a
// name appears as "-".
func (a *Action) RecordRuleReset(buckets int64) {
	if a == nil || a.log.config.Overrides == nil {
		return
	}
	caller, _ := a.log.config.Caller(a.request)
	a.note(overrides.Entry{
		Kind: overrides.EntryCleared, Rule: a.rule, Buckets: buckets, Reason: a.reason, Author: cmp.Or(caller.Name, "-"), Role: a.role, From: caller.From,
	}, "rule", a.rule, "buckets", buckets)
}

// RecordChange writes a change of the bucket to the shared audit log and waits for it until the timeout. A failure is
// logged, and the change stays in this server's memory. Nothing is written for 0 tokens or for a caller without a
// name.
func (a *Action) RecordChange(what overrides.EntryKind, tokens bucket.Tokens) {
	if a == nil || tokens <= 0 || a.log.config.Overrides == nil {
		return
	}
	caller, _ := a.log.config.Caller(a.request)
	if caller.Name == "" {
		return
	}
	a.note(overrides.Entry{
		Kind: what, Key: a.key, Tokens: json.Number(tokens.String()), Reason: a.reason, Author: caller.Name, Role: a.role, From: caller.From,
	}, "key", a.masked, "tokens", tokens.String())
}

func (a *Action) note(e overrides.Entry, fields ...any) {
	// The change stays even if the client disconnects.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.request.Context()), a.log.config.NoteTimeout)
	defer cancel()
	var err error
	if a.noted, err = a.log.config.Overrides.Note(ctx, e); err != nil {
		a.log.config.Logger.Error("cannot write to shared audit log",
			append([]any{"what", whats[e.Kind], "by", e.Author}, append(fields, "err", err)...)...)
	}
}

// End records the action with the status of its response. Status 0 means that the handler panicked. Apart from
// the name of the action, the log shows only the masked key and the reason.
func (a *Action) End(status int) {
	if a == nil {
		return
	}
	caller, ok := a.log.config.Caller(a.request)
	if !ok {
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
	one := record{api.Activity{
		At: a.log.config.Now().Time(), What: a.what, By: caller.Name, Role: a.role, From: caller.From, Status: status, Key: a.key, Reason: a.reason, Rule: a.rule,
	}, a.noted.ID}
	if one.entry != "" { // consistent with other servers
		one.At, one.Key = a.noted.At, a.noted.Key
	}
	a.log.add(one)
}

func (l *Log) add(one record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ring[l.next%MaxActions] = one
	l.next++
}

// List returns the actions on this server and the changes to buckets on any server with the same store, each
// once. They are sorted newest first by the servers' clocks, and have unmasked keys.
func (l *Log) List() []api.Activity {
	if l.config.Overrides == nil {
		return l.merge(nil)
	}
	return l.merge(l.config.Overrides.Audit())
}

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
		if what := whats[e.Kind]; what != "" && !own[e.ID] { // the shared log has only completed changes
			list = append(list, api.Activity{At: e.At, What: what, By: e.Author, Role: e.Role, From: e.From, Status: http.StatusOK, Key: e.Key, Reason: e.Reason, Rule: e.Rule})
		}
	}
	slices.SortStableFunc(list, func(a, b api.Activity) int { return b.At.Compare(a.At) })
	return list[:min(len(list), MaxActions)]
}

var whats = map[overrides.EntryKind]string{overrides.EntryReset: "bucket/reset", overrides.EntryTaken: "bucket/take", overrides.EntryCleared: "rules/reset"}
