// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/metehq/mete/internal/proctest"
)

// The traffic: how often each client sends which request. Each client has its own address and bucket.
const (
	downloadPath = "/downloads/notes.txt"
	pagePath     = "/"

	floodAddr     = "127.0.0.1" // wrk's
	floodDuration = time.Second

	downloadsEach = 80
	downloadConns = 4

	readerAddr  = "127.0.0.6"
	readerPages = 120
	readerPause = 20 * time.Millisecond

	strangerCount = 80
	strangerPages = 5
)

var downloaders = []string{"127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"}

// A traffic holds the answers that the clients got.
type traffic struct {
	downloads []answer // of each downloader, several at once
	reader    []answer // one after the other
	strangers []answer // one after the other, each of another client
	flood     counts
	begun     time.Time // before the first request
	ended     time.Time // after the last answer
}

// An answer is the result of a request, with the times of request and answer.
type answer struct {
	addr      string
	allowed   bool
	sent, got time.Time
}

type counts struct{ allowed, denied int }

// drive sends the traffic to a server: first downloads, a flood of them and a
// reader at once, then a crowd of strangers. It takes about three seconds.
func drive(t *testing.T, url string) *traffic {
	t.Helper()
	tr := &traffic{begun: time.Now()}
	var clients sync.WaitGroup
	results := make(chan []answer, len(downloaders)*downloadConns)
	for _, addr := range downloaders {
		c := newClient(t, addr)
		defer c.close()
		for range downloadConns {
			clients.Go(func() {
				var got []answer
				for range downloadsEach / downloadConns {
					got = append(got, c.get(url+downloadPath))
				}
				results <- got
			})
		}
	}
	clients.Go(func() { tr.flood = flood(t, url+downloadPath) })
	clients.Go(func() { tr.reader = read(t, url+pagePath) })
	clients.Wait()
	close(results)
	for r := range results {
		tr.downloads = append(tr.downloads, r...)
	}

	for i := range strangerCount {
		c := newClient(t, fmt.Sprintf("127.0.1.%d", i+1))
		defer c.close()
		for range strangerPages {
			tr.strangers = append(tr.strangers, c.get(url+pagePath))
		}
	}
	tr.ended = time.Now()
	return tr
}

// read fetches pages at a steady pace.
func read(t *testing.T, url string) []answer {
	c := newClient(t, readerAddr)
	defer c.close()
	pace := time.NewTicker(readerPause)
	defer pace.Stop()
	var got []answer
	for range readerPages {
		got = append(got, c.get(url))
		select {
		case <-pace.C:
		case <-t.Context().Done():
			return got
		}
	}
	return got
}

var (
	wrkTotal  = regexp.MustCompile(`(?m)^\s*(\d+) requests in `)
	wrkDenied = regexp.MustCompile(`(?m)^\s*Non-2xx or 3xx responses: (\d+)`)
)

// flood lets wrk ask as fast as it can.
func flood(t *testing.T, url string) counts {
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, proctest.Find(t, "wrk", "wrk"), "-t1", "-c8", "-d"+floodDuration.String(), url)
	output, err := cmd.CombinedOutput()
	total := wrkTotal.FindSubmatch(output)
	if err != nil || total == nil {
		t.Errorf("wrk: %v\n%s", err, output)
		return counts{}
	}
	var c counts
	if denied := wrkDenied.FindSubmatch(output); denied != nil {
		c.denied, _ = strconv.Atoi(string(denied[1]))
	}
	n, _ := strconv.Atoi(string(total[1]))
	c.allowed = n - c.denied
	return c
}

// A client sends from one address. That all of 127.0.0.0/8 is this machine holds
// on Linux only.
type client struct {
	t    *testing.T
	addr string
	http *http.Client
}

func newClient(t *testing.T, addr string) *client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(addr)}}
	transport := &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: downloadConns}
	return &client{t: t, addr: addr, http: &http.Client{Transport: transport, Timeout: startTimeout}}
}

// close closes the client's connections: nginx waits for them before it ends.
func (c *client) close() { c.http.CloseIdleConnections() }

// get asks once. An answer that is neither allowed nor denied fails the test.
func (c *client) get(url string) answer {
	a := answer{addr: c.addr, sent: time.Now()}
	resp, err := c.http.Get(url)
	if err != nil {
		c.t.Errorf("%s: %v", c.addr, err)
		return a
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	a.got = time.Now()
	a.allowed = resp.StatusCode == http.StatusOK
	switch {
	case err != nil || len(body) == 0:
		c.t.Errorf("%s: GET %s: body %q, error %v", c.addr, url, body, err)
	case a.allowed:
	case resp.StatusCode != http.StatusTooManyRequests:
		c.t.Errorf("%s: GET %s: status %s, want 200 or 429", c.addr, url, resp.Status)
	case resp.Header.Get("Retry-After") == "":
		c.t.Errorf("%s: GET %s: denied without Retry-After: %v", c.addr, url, resp.Header)
	}
	return a
}

// byAddress counts what each client saw.
func (tr *traffic) byAddress() map[string]counts {
	by := map[string]counts{floodAddr: tr.flood}
	for _, answers := range [][]answer{tr.downloads, tr.reader, tr.strangers} {
		for _, a := range answers {
			c := by[a.addr]
			if a.allowed {
				c.allowed++
			} else {
				c.denied++
			}
			by[a.addr] = c
		}
	}
	return by
}

func (tr *traffic) denied() int {
	n := 0
	for _, c := range tr.byAddress() {
		n += c.denied
	}
	return n
}
