// SPDX-License-Identifier: Apache-2.0

package proctest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

const pollInterval = 10 * time.Millisecond

// A Probe returns nil, or an error with the unmet condition. It ends when its context is done.
type Probe func(context.Context) error

// WaitReady waits until the probe succeeds. The test fails after the timeout, or if the process ends.
func (p *Process) WaitReady(timeout time.Duration, probe Probe) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	go func() {
		select {
		case <-p.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := Poll(ctx, probe)
	if err == nil {
		return
	}
	select {
	case <-p.done:
		p.t.Fatalf("%s ended before it was ready: %v", p.cmd.Path, p.err)
	default:
		p.t.Fatalf("%s is not ready after %v: %v", p.cmd.Path, timeout, err)
	}
}

// Poll calls the probe until it succeeds or ctx is done. It returns the last error of the probe.
func Poll(ctx context.Context, probe Probe) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := probe(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-ticker.C:
		}
	}
}

// TCP returns a probe of a listener at host:port.
func TCP(addr string) Probe {
	return func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		return conn.Close()
	}
}

// HTTP returns a probe that expects status 200 from a GET of a URL.
func HTTP(url string) Probe {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("GET %s: status %s", url, resp.Status)
		}
		return nil
	}
}
