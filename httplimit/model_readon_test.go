// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/internal/testkit"
)

// A piped provider has the response in a pipe, without goroutines of its own. It ends with the context of the request.
type piped struct {
	header chan struct{} // the header waits until it is closed
	writer *io.PipeWriter
	body   *io.PipeReader
}

func newPiped() *piped {
	p := &piped{header: make(chan struct{})}
	p.body, p.writer = io.Pipe()
	return p
}

func (p *piped) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-p.header:
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
	context.AfterFunc(r.Context(), func() { p.body.CloseWithError(context.Cause(r.Context())) })
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: p.body, Request: r}, nil
}

func (p *piped) send(event string) { fmt.Fprintf(p.writer, "data: %s\n\n", event) }

// A program that closes the body, or that cancels its request, pays for the hidden reasoning that the last event reports. If the
// event does not come in time, it pays at least what it has reserved.
func TestModelTransport_HangsUp(t *testing.T) {
	for _, how := range []string{"close", "cancel", "close during a read", "cancel during a read", "client timeout", "cancel before the header", "timeout before the header"} {
		for _, ends := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, ends %v", how, ends), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { hangUp(t, how, ends) })
			})
		}
	}
}

func hangUp(t *testing.T, how string, ends bool) {
	provider := newPiped()
	c := newCaller(t, still(), unboundedPolicy, httplimit.ModelTransportConfig{Base: provider})
	if strings.Contains(how, "timeout") {
		c.Timeout = time.Minute
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://provider"+chatPath, strings.NewReader(unbounded))
	if strings.HasSuffix(how, "header") {
		go func() { synctest.Wait(); cancelUnlessTimeout(how, cancel) }()
		if _, err := c.Do(req); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	} else {
		close(provider.header)
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		go provider.send(content("hello"))
		piece := make([]byte, 4096)
		if n, err := res.Body.Read(piece); err != nil || !strings.Contains(string(piece[:n]), "hello") {
			t.Fatalf("read %q (%v)", piece[:n], err)
		}
		read := make(chan error, 1)
		if strings.HasSuffix(how, "read") || how == "client timeout" {
			go func() { _, err := res.Body.Read(make([]byte, 4096)); read <- err }()
			synctest.Wait()
		}
		switch {
		case strings.HasPrefix(how, "close"):
			res.Body.Close()
		case how == "client timeout":
			if err := <-read; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("read: %v", err)
			}
			read <- err
		default:
			cancel()
		}
		synctest.Wait()
		if len(read) == 0 && strings.HasSuffix(how, "read") {
			t.Error("the read has not ended")
		}
		if _, err := res.Body.Read(piece); err == nil {
			t.Error("a read after the end has no error")
		}
		defer res.Body.Close()
	}
	synctest.Wait()
	if len(c.settled) > 0 {
		t.Fatal("settled before the usage is known")
	}
	want := bucket.Tokens(80)
	began := time.Now()
	if ends {
		want = 920
		if strings.HasSuffix(how, "header") {
			close(provider.header)
		}
		provider.send(content("more"))
		provider.send(thoughtful)
		provider.writer.Close()
	}
	c.wantCharge(80, want)
	if after := time.Since(began); !ends && after != httplimit.ReadOnTime {
		t.Errorf("settled after %v", after)
	}
	synctest.Wait()
	if n := c.Transport.(*httplimit.ModelTransport).CountReadOns(); n > 0 || len(c.settled) > 0 {
		t.Errorf("%d calls of programs that are gone, settled twice: %v", n, len(c.settled) > 0)
	}
}

func cancelUnlessTimeout(how string, cancel func()) {
	if !strings.HasPrefix(how, "timeout") {
		cancel()
	}
}

// A program that closes the body after the usage, but before the end, settles the request at once.
func TestModelTransport_ClosesAfterTheUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider := newPiped()
		close(provider.header)
		c := newCaller(t, still(), unboundedPolicy, httplimit.ModelTransportConfig{Base: provider})
		res, err := c.Post("http://provider"+chatPath, "application/json", strings.NewReader(unbounded))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			provider.send(strings.Replace(content("hello"), `"finish_reason":null`, `"finish_reason":"stop"`, 1))
			provider.send(thoughtful)
			provider.send("[DONE]")
		}()
		for got := ""; !strings.Contains(got, "[DONE]"); {
			piece := make([]byte, 4096)
			n, err := res.Body.Read(piece)
			if err != nil {
				t.Fatal(err)
			}
			got += string(piece[:n])
		}
		res.Body.Close()
		if len(c.settled) == 0 {
			t.Error("not settled by Close")
		}
		c.wantCharge(80, 920)
	})
}

// A program that closes the body of an error, as SDKs do before they repeat the request, settles it at once.
func TestModelTransport_ClosesAnError(t *testing.T) {
	server := newModelServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(529)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	c := newCaller(t, still(), unboundedPolicy, httplimit.ModelTransportConfig{})
	res, err := c.Post(server.URL+chatPath, "application/json", strings.NewReader(unbounded))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if len(c.settled) == 0 {
		t.Error("not settled by Close")
	}
	c.wantCharge(80, 0)
}

// With a real connection, the provider sees that a program is gone only after its answer.
func TestModelTransport_HangsUpOnAConnection(t *testing.T) {
	gone := make(chan struct{})
	server := newModelServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		chunk(w, content("hello"))
		<-gone
		chunk(w, thoughtful)
		chunk(w, "[DONE]")
	})
	c := newCaller(t, still(), unboundedPolicy, httplimit.ModelTransportConfig{})
	res, err := c.Post(server.URL+chatPath, "application/json", strings.NewReader(unbounded))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := res.Body.Read(make([]byte, 4096)); err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	close(gone)
	c.wantCharge(80, 920)
	testkit.Eventually(t, "no call of a program that is gone", func() error {
		if n := c.Transport.(*httplimit.ModelTransport).CountReadOns(); n > 0 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
}
