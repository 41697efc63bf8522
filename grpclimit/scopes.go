// SPDX-License-Identifier: Apache-2.0

package grpclimit

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/metehq/mete/internal/pacer"
	"github.com/metehq/mete/internal/ratelimitfields"
)

// maxScopes bounds the scopes. Idle scopes are evicted; if none is idle, calls of new scopes are not paced.
const maxScopes = 1024

// scopes holds the pacers of scopes by name. The zero value is empty.
type scopes struct {
	mu     sync.Mutex // guards the fields below
	byName map[string]*pacer.Pacer
}

func (c *ClientInterceptor) scope(ctx context.Context, method string, cc *grpc.ClientConn) *pacer.Pacer {
	if c.config.Scope == nil {
		return nil
	}
	name := c.config.Scope(ctx, method)
	if name == "" {
		return nil
	}
	return c.scopes.get(target(cc) + "\x00" + name)
}

func (s *scopes) get(name string) *pacer.Pacer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.byName[name]; found != nil {
		return found
	}
	if len(s.byName) >= maxScopes {
		for old, candidate := range s.byName {
			if candidate.IsIdle() {
				delete(s.byName, old)
			}
		}
		if len(s.byName) >= maxScopes {
			return nil
		}
	}
	if s.byName == nil {
		s.byName = map[string]*pacer.Pacer{}
	}
	made := pacer.New()
	s.byName[name] = made
	return made
}

// waitTurn waits until a call of the scope may be sent. retry marks a call that was sent before.
func (c *ClientInterceptor) waitTurn(ctx context.Context, scope *pacer.Pacer, again bool) (pacer.Ticket, error) {
	if scope == nil {
		return pacer.Ticket{}, nil
	}
	latest, late := time.Now().Add(c.config.MaxDelay), codes.ResourceExhausted
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(latest) {
		latest, late = deadline, codes.DeadlineExceeded
	}
	ticket, err := scope.Wait(ctx, latest, again)
	switch {
	case err == nil:
		return ticket, nil
	case errors.Is(err, pacer.ErrTooLate):
		return ticket, status.Error(late, "call was not sent: "+err.Error())
	case errors.Is(err, pacer.ErrTooMany):
		return ticket, status.Error(codes.ResourceExhausted, "call was not sent: "+err.Error())
	}
	return ticket, undecidedError(ctx, err)
}

func answer(err error, trailers metadata.MD) pacer.Answer {
	a := pacer.Answer{Refused: status.Code(err) == codes.ResourceExhausted}
	a.Wait, a.HasWait = retryDelay(err)
	if limits := trailers["ratelimit"]; len(limits) > 0 {
		h := http.Header{"Ratelimit": limits, "Ratelimit-Policy": trailers["ratelimit-policy"]}
		a.Announced = ratelimitfields.Read(h, time.Now())
	}
	return a
}

// settle reports the result of a call to its scope. Errors that did not come from the server have no information.
func settle(scope *pacer.Pacer, ticket pacer.Ticket, err error, trailers metadata.MD) {
	switch code := status.Code(err); {
	case scope == nil:
	case code == codes.Canceled || code == codes.DeadlineExceeded || code == codes.Unavailable:
		scope.RecordLoss(ticket)
	default:
		scope.RecordAnswer(ticket, answer(err, trailers))
	}
}
