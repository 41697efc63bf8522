// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A component is a part of the server with a life of its own. A nil function does nothing.
//
// [New] makes the components in the order of their dependencies: a constructor opens what the
// component needs, and takes the components before it as arguments. [Server.Run] starts them
// in that order and stops them in reverse.
type component struct {
	Name string // in errors

	// Start begins the work of the component, and does not wait for its end.
	Start func(context.Context) error

	// Stop ends the work and releases what the constructor has opened. It is called once,
	// also if Start was not. ctx ends after timeouts.drain: work that comes after the last
	// request needs a bound of its own.
	Stop func(context.Context) error

	// Health returns why the server should get no traffic. Everybody can read the error at
	// /readyz, so it holds nothing private.
	Health func(context.Context) error
}

// components are in the order of their dependencies.
type components []component

// start starts all components, or returns the first error. Then the caller stops them.
func (cs components) start(ctx context.Context) error {
	for _, c := range cs {
		if err := call(ctx, c.Start); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return nil
}

// stop stops all components in reverse order, and returns all errors.
func (cs components) stop(ctx context.Context) error {
	var errs []error
	for _, c := range slices.Backward(cs) {
		if err := call(ctx, c.Stop); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.Name, err))
		}
	}
	return errors.Join(errs...)
}

// health returns the error of the first component that is not ready.
func (cs components) health(ctx context.Context) error {
	for _, c := range cs {
		if err := call(ctx, c.Health); err != nil {
			return err
		}
	}
	return nil
}

func call(ctx context.Context, f func(context.Context) error) error {
	if f == nil {
		return nil
	}
	return f(ctx)
}

// background returns a component that calls run when it starts. Stop cancels the context of
// run and waits for its return.
func background(name string, run func(context.Context)) component {
	var running sync.WaitGroup
	cancel := func() {}
	return component{
		Name: name,
		Start: func(ctx context.Context) error {
			ctx, cancel = context.WithCancel(context.WithoutCancel(ctx))
			running.Go(func() { run(ctx) })
			return nil
		},
		Stop: func(context.Context) error {
			cancel()
			running.Wait()
			return nil
		},
	}
}

// closing returns a component that only has something to release.
func closing(name string, release func()) component {
	return component{Name: name, Stop: func(context.Context) error {
		release()
		return nil
	}}
}

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
