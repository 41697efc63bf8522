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

// A Node is a [Store] with connections of its own, which knows how many others
// there are. [Open] and [Connect] make it.
type Node struct {
	*Store
	presence *Presence
	client   rueidis.Client
	close    func() error
}

// Open is [ParseURL] and then [Connect].
func Open(ctx context.Context, rawURL string) (*Node, error) {
	options, config, err := ParseURL(rawURL)
	if err != nil {
		return nil, err
	}
	return Connect(ctx, options, config)
}

// Connect connects to a Redis and joins the nodes there. If no server answers, the
// error wraps [store.ErrUnavailable]. Connect tries once, for as long as ctx lasts.
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
	n.close = sync.OnceValue(n.end)
	return n, nil
}

// Nodes is how many nodes share the store's buckets: see [Presence.Nodes].
func (n *Node) Nodes() int { return n.presence.Nodes() }

// Close ends the store, leaves the other nodes and closes the connections. What
// is asked later fails.
func (n *Node) Close() error { return n.close() }

func (n *Node) end() error {
	err := n.Store.Close()
	n.presence.joined.Close()
	n.client.Close()
	return err
}

// Dial is [rueidis.NewClient], and sees that what answers is what the options say:
// no replica, no sentinel in a server's place, and a cluster only where one is
// meant. Where nothing answers, the error wraps [store.ErrUnavailable]. The client
// is the caller's.
func Dial(ctx context.Context, options rueidis.ClientOption) (rueidis.Client, error) {
	client, err := rueidis.NewClient(options)
	if err != nil {
		return nil, fmt.Errorf("redisstore: connect: %w", unanswered(err))
	}
	if err := verify(ctx, client, options); err != nil {
		client.Close()
		return nil, fmt.Errorf("redisstore: connect: %w", err)
	}
	return client, nil
}

// verify asks the server what it is: so it is said at the start, and not with
// the first take.
func verify(ctx context.Context, client rueidis.Client, options rueidis.ClientOption) error {
	info, err := client.Do(ctx, client.B().Arbitrary("HELLO").Build()).AsMap()
	if err != nil {
		return unanswered(err)
	}
	text := func(name string) string { m := info[name]; s, _ := m.ToString(); return s }
	mode, role := text("mode"), text("role")
	wantsCluster := !options.ForceSingleClient && options.Sentinel.MasterSet == ""
	switch {
	case mode == "sentinel":
		return errors.New("there is a sentinel: write redis+sentinel://host:port/master")
	case mode == "cluster" && !wantsCluster:
		return errors.New("there is a node of a cluster: write redis+cluster://host:port")
	case mode != "cluster" && wantsCluster:
		return errors.New("there is a server that is no part of a cluster: write redis://host:port")
	case role != "master" && !wantsCluster:
		return fmt.Errorf("there is a %s, which takes no writes: name its master", role)
	}
	return nil
}

// unanswered marks the errors that may be others in a moment: that nothing
// answers, or a server that is not ready. What a server refuses stays refused.
func unanswered(err error) error {
	refusal, refused := rueidis.IsRedisErr(err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	if refused && !notReady(refusal.Error()) || untrusted {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}

// notReady says whether a server refuses for now only.
func notReady(refusal string) bool {
	word, _, _ := strings.Cut(refusal, " ")
	return slices.Contains([]string{"LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY"}, word)
}
