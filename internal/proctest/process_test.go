// SPDX-License-Identifier: Apache-2.0

package proctest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/metehq/mete/internal/proctest"
)

// These tests run the test binary as their program. The variable roleVar selects its role.
const (
	roleVar = "PROCTEST_ROLE"
	addrVar = "PROCTEST_ADDR"
	timeout = time.Minute
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "":
		os.Exit(m.Run())
	case "server": // serves until it is asked to end
		stopped := make(chan os.Signal, 1)
		signal.Notify(stopped, syscall.SIGTERM)
		l, err := net.Listen("tcp", os.Getenv(addrVar))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("listening")
		go http.Serve(l, http.NotFoundHandler())
		<-stopped
		fmt.Println("stopping")
	case "postgres": // ends and leaves a server behind
		fmt.Println(proctest.PostgresURL(new(recorder)))
		os.Exit(1)
	case "failure": // ends at once
		fmt.Println("broken")
		os.Exit(3)
	}
}

func program(t testing.TB, role, addr string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVar+"="+role, addrVar+"="+addr)
	return cmd
}

func TestProcess_StartsWaitsAndStops(t *testing.T) {
	addr := proctest.FreeAddr(t)
	p := proctest.Start(t, program(t, "server", addr))
	p.WaitReady(timeout, proctest.TCP(addr))
	if err := p.Stop(); err != nil {
		t.Errorf("Stop: %v, want exit status 0", err)
	}
	if got, want := p.Output(), "listening\nstopping\n"; got != want {
		t.Errorf("Output: %q, want %q", got, want)
	}
	if err := proctest.TCP(addr)(t.Context()); err == nil {
		t.Errorf("%s still listens after Stop", addr)
	}
	if err := p.Stop(); err != nil {
		t.Errorf("second Stop: %v, want what the first said", err)
	}
}

func TestProcess_CleanupEndsIt(t *testing.T) {
	addr := proctest.FreeAddr(t)
	var p *proctest.Process
	t.Run("inner", func(t *testing.T) {
		p = proctest.Start(t, program(t, "server", addr))
		p.WaitReady(timeout, proctest.TCP(addr))
	})
	select {
	case <-p.Done():
	default:
		t.Errorf("process %d lives on after its test", p.Pid())
	}
}

func TestProcess_EndsBeforeReady(t *testing.T) {
	failed := record(t, func(t testing.TB) {
		p := proctest.Start(t, program(t, "failure", ""))
		p.WaitReady(timeout, func(context.Context) error { return errors.New("never") })
	})
	for _, want := range []string{"ended before it was ready: exit status 3", "broken"} {
		if !strings.Contains(failed, want) {
			t.Errorf("test log %q does not have %q", failed, want)
		}
	}
}

func TestProcess_NeverReady(t *testing.T) {
	failed := record(t, func(t testing.TB) {
		p := proctest.Start(t, program(t, "server", "127.0.0.1:0"))
		p.WaitReady(20*time.Millisecond, func(context.Context) error { return errors.New("no answer") })
	})
	if want := "is not ready after 20ms: no answer"; !strings.Contains(failed, want) {
		t.Errorf("test log %q does not have %q", failed, want)
	}
}

func TestFind(t *testing.T) {
	if got := proctest.Find(t, "go", "golang"); !strings.HasSuffix(got, "go") {
		t.Errorf("Find(go): %q, want the path of go", got)
	}
	failed := record(t, func(t testing.TB) { proctest.Find(t, "no-such-program", "its-package") })
	if want := "no-such-program not found: run make setup, or apt-get install its-package"; failed != want {
		t.Errorf("Find of a missing program: %q, want %q", failed, want)
	}
}

func TestHTTP(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	if err := proctest.Poll(ctx, proctest.HTTP(server.URL)); err != nil {
		t.Errorf("Poll: %v, want success at the third try", err)
	}
	if got := asked.Load(); got != 3 {
		t.Errorf("server was asked %d times, want 3", got)
	}
}
