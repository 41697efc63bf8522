// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/http"
	"sync"

	"github.com/metehq/mete/httpapi"
)

// maxActivity bounds what is remembered of what administrators did. The log has all.
const maxActivity = 200

// activity is what administrators did lately: in the memory of this server, since it
// began. It is safe for concurrent use, and the zero one is empty.
type activity struct {
	mu   sync.Mutex // guards the fields below
	ring [maxActivity]httpapi.Activity
	next int // how many there have been
}

func (a *activity) add(one httpapi.Activity) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ring[a.next%maxActivity] = one
	a.next++
}

// list returns them, the newest first.
func (a *activity) list() []httpapi.Activity {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := make([]httpapi.Activity, min(a.next, maxActivity))
	for i := range list {
		list[i] = a.ring[(a.next-1-i)%maxActivity]
	}
	return list
}

type actKey struct{}

// withAct returns r with a place for what it is about, which the API fills in once it
// has read that.
func withAct(r *http.Request) (*http.Request, *httpapi.Act) {
	act := new(httpapi.Act)
	return r.WithContext(context.WithValue(r.Context(), actKey{}, act)), act
}

// acted is told by the API what a request is about.
func acted(r *http.Request, about httpapi.Act) {
	if act, ok := r.Context().Value(actKey{}).(*httpapi.Act); ok {
		*act = about
	}
}
