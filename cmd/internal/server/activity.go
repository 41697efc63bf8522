// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/overrides"
)

// maxActivity bounds what is remembered of what administrators did, and what is listed
// of it. The log has all.
const maxActivity = 200

// activity is what administrators did lately: in the memory of this server, since it
// began. It is safe for concurrent use, and the zero one is empty.
type activity struct {
	mu   sync.Mutex // guards the fields below
	ring [maxActivity]remembered
	next int // how many there have been
}

// A remembered is something that was asked of this server.
type remembered struct {
	httpapi.Activity
	entry string // the ID of its entry in the audit; empty where there should be none
}

func (a *activity) add(one remembered) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ring[a.next%maxActivity] = one
	a.next++
}

// list returns them, and what the audit says that was done to buckets at any server:
// each once, the newest first, by the clocks of the servers.
func (a *activity) list(audit []overrides.Entry) []httpapi.Activity {
	a.mu.Lock()
	defer a.mu.Unlock()
	own := map[string]bool{}
	var list []httpapi.Activity
	for i := range min(a.next, maxActivity) {
		one := &a.ring[(a.next-1-i)%maxActivity]
		own[one.entry] = true
		list = append(list, one.Activity)
	}
	for _, e := range slices.Backward(audit) {
		if what := actWords[e.What]; what != "" && !own[e.ID] {
			list = append(list, activityOf(what, &e))
		}
	}
	slices.SortStableFunc(list, func(a, b httpapi.Activity) int { return b.At.Compare(a.At) })
	return list[:min(len(list), maxActivity)]
}

// actWords are what the log calls what was done to a bucket.
var actWords = map[overrides.What]string{overrides.Reset: "bucket/reset", overrides.Taken: "bucket/take"}

// activityOf is an entry of the audit: only what was done is there.
func activityOf(what string, e *overrides.Entry) httpapi.Activity {
	return httpapi.Activity{At: e.At, What: what, By: e.Author, Role: e.Role, From: e.From, Status: http.StatusOK, Key: e.Key, Reason: e.Reason}
}

type actKey struct{}

// An act is what a request does to a bucket, as far as that is known.
type act struct {
	httpapi.Act
	noted overrides.Entry // without an ID before it is tried
}

// withAct returns r with a place for what it is about, which the API fills in once it
// has read that.
func withAct(r *http.Request) (*http.Request, *act) {
	a := new(act)
	return r.WithContext(context.WithValue(r.Context(), actKey{}, a)), a
}

// acted is told by the API what a request is about.
func acted(r *http.Request, about httpapi.Act) {
	if a, ok := r.Context().Value(actKey{}).(*act); ok {
		a.Act = about
	}
}

// noteAct is told by the API what was done to a bucket, and writes it into the audit that
// servers share. It is done whatever becomes of that: what cannot be written there is
// in the log, and in the memory of this server. The answer waits for it, half as long as
// it may take, so that what has been answered is as a rule there.
func (s *Server) noteAct(r *http.Request, e overrides.Entry) {
	a, ok := r.Context().Value(actKey{}).(*act)
	c, _ := r.Context().Value(callerKey{}).(caller)
	if !ok || c.name == "" { // whoever can change something has a name
		return
	}
	e.Author, e.Role, e.From = c.name, c.role.String(), network(r.RemoteAddr)
	// Who hangs up does not undo it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), s.config.Timeouts.APIRequest/2)
	defer cancel()
	var err error
	if a.noted, err = s.overrides.Note(ctx, e); err != nil {
		s.log.Error("what was done to a bucket may be missing in the audit: only the log and the memory of this server are sure to have it",
			"what", actWords[e.What], "by", e.Author, "key", a.Masked, "tokens", e.Tokens.String(), "error", err)
	}
}

// listActivity is what administrators did lately.
func (s *Server) listActivity() []httpapi.Activity { return s.activity.list(s.overrides.Audit()) }
