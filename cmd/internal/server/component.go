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

// A component is a part of the server with its own lifecycle. A nil function does nothing.
//
// [New] creates the components in the order of their dependencies. A constructor opens resources and takes earlier
// components as arguments. [Server.Run] starts the components in the same order and stops them in reverse.
type component struct {
	Name string // for errors

	// Start begins the work of the component without waiting for its end.
	Start func(context.Context) error

	// Stop ends the work and releases all resources. It is called once, even if Start was not. ctx ends after
	// timeouts.drain, so work that continues after the last request needs its own timeout.
	Stop func(context.Context) error

	// Health returns why the server should receive no traffic. /readyz shows the error to everyone, so it must not
	// contain secrets.
	Health func(context.Context) error
}

// components are sorted by dependency.
type components []component

// start starts all components, or returns the first error. After an error, the caller must stop them.
func (cs components) start(ctx context.Context) error {
	for _, c := range cs {
		if err := callNonNil(ctx, c.Start); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return nil
}

func (cs components) stop(ctx context.Context) error {
	var errs []error
	for _, c := range slices.Backward(cs) {
		if err := callNonNil(ctx, c.Stop); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (cs components) health(ctx context.Context) error {
	for _, c := range cs {
		if err := callNonNil(ctx, c.Health); err != nil {
			return err
		}
	}
	return nil
}

func callNonNil(ctx context.Context, f func(context.Context) error) error {
	if f == nil {
		return nil
	}
	return f(ctx)
}

// background returns a component that runs run in a goroutine. Stop cancels the context of run and waits until run
// returns.
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

// closing returns a component that only releases a resource.
func closing(name string, release func()) component {
	return component{Name: name, Stop: func(context.Context) error {
		release()
		return nil
	}}
}

type listener interface {
	// Serve serves until Shutdown and then returns nil.
	Serve() error

	// Shutdown stops accepting connections and waits for the requests in flight. If ctx ends first, it closes
	// their connections and returns an error that wraps the error of ctx.
	Shutdown(ctx context.Context) error
}

const maxListeners = 16

// listening returns the component for a listener. Its shutdown may take grace plus the rest of timeouts.drain.
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
				s.log.Warn("requests aborted at shutdown", "listener", name, "err", err)
			}
			serving.Wait()
			return nil
		},
	}
}
