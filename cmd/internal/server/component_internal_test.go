// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// noting returns a component that notes its calls, and the error of its Start.
func noting(calls *[]string, name string, start error) component {
	return component{
		Name:  name,
		Start: func(context.Context) error { *calls = append(*calls, "start "+name); return start },
		Stop: func(context.Context) error {
			*calls = append(*calls, "stop "+name)
			return errors.New("lost by " + name)
		},
	}
}

func TestComponents_Order(t *testing.T) {
	var calls []string
	cs := components{noting(&calls, "a", nil), {Name: "idle"}, noting(&calls, "b", nil)}
	if err := cs.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := cs.stop(t.Context())
	if want := []string{"start a", "start b", "stop b", "stop a"}; !slices.Equal(calls, want) {
		t.Errorf("got %q, want %q", calls, want)
	}
	if err == nil || err.Error() != "b: lost by b\na: lost by a" {
		t.Errorf("stop: %v, want all errors", err)
	}
}

// If a component fails to start, Run stops the started ones and returns the error.
func TestRun_StartFails(t *testing.T) {
	t.Parallel()
	var calls []string
	s := &Server{log: slog.New(slog.DiscardHandler), failed: make(chan error, maxListeners)}
	s.components = components{noting(&calls, "a", nil), noting(&calls, "b", errors.New("no luck")), noting(&calls, "c", nil)}
	err := s.Run(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "server: b: no luck") {
		t.Errorf("Run: %v, want the error of b", err)
	}
	if want := []string{"start a", "start b", "stop c", "stop b", "stop a"}; !slices.Equal(calls, want) {
		t.Errorf("got %q, want %q", calls, want)
	}
}

func TestComponents_Health(t *testing.T) {
	sick := errors.New("sick")
	s := &Server{components: components{{Name: "well"}, {Health: func(context.Context) error { return sick }}}}
	if err := s.checkReady(t.Context()); err != sick {
		t.Errorf("ready: %v, want %v", err, sick)
	}
	s.ending.Store(true)
	if err := s.checkReady(t.Context()); err != errStopping {
		t.Errorf("ready of a server that stops: %v, want %v", err, errStopping)
	}
}

// An echo is a listener of another protocol than HTTP.
type echo struct{ net.Listener }

func (e echo) Serve() error {
	for {
		c, err := e.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		c.Write([]byte("hello"))
		c.Close()
	}
}

func (e echo) Shutdown(context.Context) error { return e.Close() }

// A listener of any protocol is a component.
func TestListening_AnotherProtocol(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{log: slog.New(slog.DiscardHandler), failed: make(chan error, maxListeners)}
	s.components = components{s.newListenerComponent("echo", echo{l}, time.Second)}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var text [5]byte
	if _, err := c.Read(text[:]); err != nil || string(text[:]) != "hello" {
		t.Errorf("read %q, %v", text, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("the listener still accepts connections")
	}
}
