// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"sync"
	"time"
)

// A listener serves one protocol at one address.
type listener interface {
	// Serve serves until Shutdown, and then returns nil.
	Serve() error

	// Shutdown accepts no more connections and waits for the requests in flight. When ctx
	// ends it cuts them off, and returns an error that wraps the error of ctx.
	Shutdown(ctx context.Context) error
}

// maxListeners bounds the listeners of one server.
const maxListeners = 16

// listening returns the component of a listener. It adds grace to the time that the
// components before it have left of timeouts.drain.
func (s *Server) listening(name string, l listener, grace time.Duration) component {
	var serving sync.WaitGroup
	return component{
		Name: name,
		Start: func(context.Context) error {
			serving.Go(func() {
				if err := l.Serve(); err != nil {
					s.failed <- err
				}
			})
			return nil
		},
		Stop: func(ctx context.Context) error {
			if grace > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), grace)
				defer cancel()
			}
			if err := l.Shutdown(ctx); err != nil {
				s.log.Warn("requests cut off", "listener", name, "err", err)
			}
			serving.Wait()
			return nil
		},
	}
}
