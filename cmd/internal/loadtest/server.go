// SPDX-License-Identifier: Apache-2.0

package loadtest

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/client"
	"github.com/metehq/mete/policy"
)

func open(ctx context.Context, o Options) (target, error) {
	if kind, _, _ := strings.Cut(o.Target, ":"); kind == "http" || kind == "https" {
		return openServer(o)
	}
	return openStore(ctx, o)
}

type serverTarget struct {
	client     *client.Client
	transport  *http.Transport
	attributes map[string]string
	name       string // of the run
	own        bool   // the attributes are defaults
}

func openServer(o Options) (*serverTarget, error) {
	hc := o.HTTP
	if hc == nil {
		hc = &http.Client{Timeout: client.DefaultTimeout, Transport: http.DefaultTransport.(*http.Transport).Clone()}
	}
	t := &serverTarget{name: uniqueName(), attributes: o.Attributes}
	if transport, ok := hc.Transport.(*http.Transport); ok { // keep a connection per call
		transport.MaxIdleConns, transport.MaxIdleConnsPerHost = o.Concurrency, o.Concurrency
		t.transport = transport
	}
	c, err := client.New(o.Target, hc)
	if err != nil {
		return nil, err
	}
	t.client = c.WithToken(o.Token)
	if t.own = len(o.Attributes) == 0; t.own {
		t.attributes = map[string]string{"ip:address": "{address}", "header:x-api-key": t.name + "-{n}", "method": "GET", "path": "/"}
	}
	for name := range t.attributes {
		if _, err := policy.ParseAttribute(name); err != nil {
			return nil, fmt.Errorf("attribute: %w", err)
		}
	}
	return t, nil
}

// benchmarks is the network for load tests from RFC 2544.
var benchmarks = netip.MustParsePrefix("198.18.0.0/15")

// address returns the address of a client. Addresses repeat after 131,072 clients.
func address(key int) string {
	a := benchmarks.Addr().As4()
	key %= 1 << (32 - benchmarks.Bits())
	a[1] += byte(key >> 16)
	a[2], a[3] = byte(key>>8), byte(key)
	return netip.AddrFrom4(a).String()
}

func (t *serverTarget) take(ctx context.Context, key int) (allowed bool, err error) {
	attributes := make(map[string]string, len(t.attributes))
	for name, value := range t.attributes {
		if strings.Contains(value, "{") {
			value = strings.NewReplacer("{n}", strconv.Itoa(key), "{address}", address(key)).Replace(value)
		}
		attributes[name] = value
	}
	d, err := t.client.Take(ctx, client.Request{Attributes: attributes})
	return d.Allowed, err
}

// close disconnects. The buckets on the server refill by themselves.
func (t *serverTarget) close(context.Context) error {
	if t.transport != nil {
		t.transport.CloseIdleConnections()
	}
	return nil
}

func (t *serverTarget) note() string {
	var parts []string
	for name, value := range t.attributes {
		parts = append(parts, name+"="+value)
	}
	slices.Sort(parts)
	if !t.own {
		return "this spends tokens of the clients " + strings.Join(parts, " ")
	}
	return fmt.Sprintf("this puts load on the server and its store; clients have addresses in %v and API keys that begin with %s", benchmarks, t.name)
}
