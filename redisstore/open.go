// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/metehq/mete/store"
	"github.com/redis/rueidis"
)

// A Node is a [Store] with its own connections that also counts the other nodes. [Open] and [Connect] create it.
type Node struct {
	*Store
	presence *Presence
	client   rueidis.Client
	close    func() error
}

// Open is [ParseURL] followed by [Connect].
func Open(ctx context.Context, rawURL string) (*Node, error) {
	options, config, err := ParseURL(rawURL)
	if err != nil {
		return nil, err
	}
	return Connect(ctx, options, config)
}

// Connect connects to Redis and joins the nodes there. If no server answers, the error wraps
// [store.ErrUnavailable]. Connect tries once, until ctx ends.
func Connect(ctx context.Context, options rueidis.ClientOption, config Config) (*Node, error) {
	client, err := Dial(ctx, options)
	if err != nil {
		return nil, err
	}
	n := &Node{client: client}
	if n.Store, err = New(client, config); err == nil {
		n.presence, err = Join(ctx, client, config.Prefix, rand.Text(), 0)
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	n.close = sync.OnceValue(n.closeAll)
	return n, nil
}

// Nodes returns the number of nodes that share the store's buckets: see [Presence.Nodes].
func (n *Node) Nodes() int { return n.presence.Nodes() }

// Close closes the store, leaves the nodes and closes the connections. Later calls fail.
func (n *Node) Close() error { return n.close() }

func (n *Node) closeAll() error {
	err := n.Store.Close()
	n.presence.joined.Close()
	n.client.Close()
	return err
}

// Dial calls [rueidis.NewClient] and verifies that the server matches the options. The server must not be a
// replica or a sentinel, and must be a cluster if and only if the options specify one. If no server answers, the
// error wraps [store.ErrUnavailable]. The caller closes the client.
func Dial(ctx context.Context, options rueidis.ClientOption) (rueidis.Client, error) {
	client, err := rueidis.NewClient(options)
	if err != nil {
		return nil, fmt.Errorf("redisstore: connect: %w", markUnavailable(err))
	}
	if err := verify(ctx, client, options); err != nil {
		client.Close()
		return nil, fmt.Errorf("redisstore: connect: %w", err)
	}
	return client, nil
}

// verify asks the server for its mode and role, so that a wrong URL fails at startup and not at the first take.
func verify(ctx context.Context, client rueidis.Client, options rueidis.ClientOption) error {
	info, err := client.Do(ctx, client.B().Arbitrary("HELLO").Build()).AsMap()
	if err != nil {
		return markUnavailable(err)
	}
	text := func(name string) string { m := info[name]; s, _ := m.ToString(); return s }
	mode, role := text("mode"), text("role")
	wantsCluster := !options.ForceSingleClient && options.Sentinel.MasterSet == ""
	switch {
	case mode == "sentinel":
		return errors.New("the server is a Sentinel: use redis+sentinel://host:port/master")
	case mode == "cluster" && !wantsCluster:
		return errors.New("the server is a cluster node: use redis+cluster://host:port")
	case mode != "cluster" && wantsCluster:
		return errors.New("the server is not a cluster node: use redis://host:port")
	case role != "master" && !wantsCluster:
		return fmt.Errorf("the server is a %s and rejects writes: use the address of its master", role)
	}
	return nil
}

// markUnavailable wraps [store.ErrUnavailable] around temporary errors: no answer, or a server that is not ready.
// Other refusals of a server are permanent.
func markUnavailable(err error) error {
	refusal, refused := rueidis.IsRedisErr(err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	if refused && !isNotReady(refusal.Error()) || untrusted {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}

func isNotReady(refusal string) bool {
	word, _, _ := strings.Cut(refusal, " ")
	return slices.Contains([]string{"LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY"}, word)
}
