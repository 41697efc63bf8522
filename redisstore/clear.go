// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/store"
	"github.com/redis/rueidis"
)

const (
	// scanCount is the number of keys that one SCAN visits, and scansPerCall is the number of scans per call of
	// ClearFamilies. Redis takes less than a millisecond per scan.
	scanCount    = 500
	scansPerCall = 4

	viewChars = 16
)

var (
	_ store.Clearer       = (*Store)(nil)
	_ store.FamilyDropper = (*Store)(nil)
)

// A scanPosition is the position at which the next call of ClearFamilies continues.
type scanPosition struct {
	view   string // hash of the masters' addresses and run IDs
	node   int    // index among the masters, sorted by address
	cursor uint64
}

func (p scanPosition) String() string { return fmt.Sprintf("%s.%d.%d", p.view, p.node, p.cursor) }

func parseScanPosition(text string) (p scanPosition, err error) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 || len(parts[0]) != viewChars {
		return p, fmt.Errorf("from %q: %w", text, store.ErrFrom)
	}
	var nodeErr, cursorErr error
	p.view = parts[0]
	p.node, nodeErr = strconv.Atoi(parts[1])
	p.cursor, cursorErr = strconv.ParseUint(parts[2], 10, 64)
	if nodeErr != nil || cursorErr != nil || p.node < 0 {
		return p, fmt.Errorf("from %q: %w", text, store.ErrFrom)
	}
	return p, nil
}

type master struct {
	addr, run string
	client    rueidis.Client
}

// ClearFamilies implements [store.Clearer]. It scans the keys of every master by SCAN, some thousands per call,
// and deletes buckets by DEL. The Redis user also needs permission for SCAN and INFO.
//
// A cursor of SCAN is valid for one run of one server. After a failover or a restart, the next call starts over.
// The scan can miss a key that moves to another cluster node while it runs: repeat it after the resharding.
func (s *Store) ClearFamilies(ctx context.Context, families []string, from string) (removed int64, next string, err error) {
	var at scanPosition
	if from != "" {
		if at, err = parseScanPosition(from); err != nil {
			return 0, "", fmt.Errorf("redisstore: clear families: %w", err)
		}
	}
	masters, view, err := s.findMasters(ctx)
	if err != nil {
		return 0, "", withOp(newStoreError(err), "clear families")
	}
	if at.view != view || at.node >= len(masters) {
		at = scanPosition{view: view}
	}
	pattern := s.familyPattern(families)
	for range scansPerCall {
		n, cursor, err := s.clearPage(ctx, masters[at.node].client, pattern, families, at.cursor)
		if removed += n; err != nil {
			return removed, "", withOp(newStoreError(err), "clear families")
		}
		if at.cursor = cursor; cursor != 0 {
			continue
		}
		if at.node++; at.node == len(masters) {
			return removed, "", nil
		}
	}
	return removed, at.String(), nil
}

// findMasters returns the servers that hold keys, sorted by address, and a hash of their addresses and run IDs.
func (s *Store) findMasters(ctx context.Context) (list []master, view string, err error) {
	for addr, client := range s.client.Nodes() {
		ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
		answers := client.DoMulti(ctx, client.B().Info().Section("server").Build(), client.B().Info().Section("replication").Build())
		cancel()
		server, err := answers[0].ToString()
		if err != nil {
			return nil, "", err
		}
		replication, err := answers[1].ToString()
		if err != nil {
			return nil, "", err
		}
		if infoField(replication, "role") == "master" {
			list = append(list, master{addr, infoField(server, "run_id"), client})
		}
	}
	if len(list) == 0 {
		return nil, "", newAnswerError("no master", strings.Join(slices.Sorted(maps.Keys(s.client.Nodes())), ", "))
	}
	slices.SortFunc(list, func(a, b master) int { return cmp.Compare(a.addr, b.addr) })
	sum := sha256.New()
	for _, m := range list {
		_, _ = fmt.Fprintln(sum, m.addr, m.run) // never fails
	}
	return list, hex.EncodeToString(sum.Sum(nil))[:viewChars], nil
}

// infoField returns the value of a field of INFO, empty if it is absent.
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (s *Store) clearPage(ctx context.Context, node rueidis.Client, pattern string, families []string, cursor uint64) (removed int64, next uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	page, err := node.Do(ctx, node.B().Scan().Cursor(cursor).Match(pattern).Count(scanCount).Build()).AsScanEntry()
	if err != nil {
		return 0, 0, err
	}
	var keys []string
	for _, key := range page.Elements {
		if bucketKey, ok := strings.CutPrefix(key, s.bucketPrefix); ok && slices.Contains(families, store.Family(bucketKey)) {
			keys = append(keys, key)
		}
	}
	var commands rueidis.Commands
	switch {
	case len(keys) == 0:
	case s.cluster: // one DEL takes keys of one slot only
		for _, key := range keys {
			commands = append(commands, s.client.B().Del().Key(key).Build())
		}
	default:
		commands = rueidis.Commands{s.client.B().Del().Key(keys...).Build()}
	}
	for _, answer := range s.client.DoMulti(ctx, commands...) {
		n, wrong := answer.AsInt64()
		if removed += n; wrong != nil {
			err = cmp.Or(err, wrong)
		}
	}
	return removed, page.Cursor, err
}

// familyPattern returns a SCAN pattern that matches all keys of the families. It can match other keys, too.
func (s *Store) familyPattern(families []string) string {
	common := ""
	for i, family := range families {
		if i == 0 {
			common = family
		}
		for !strings.HasPrefix(family, common) {
			common = common[:len(common)-1]
		}
	}
	return escapePattern(s.bucketPrefix) + "*" + escapePattern(common) + "*"
}

func escapePattern(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}

// DropFamilies implements [store.FamilyDropper]: it drops the leases of the families.
func (s *Store) DropFamilies(families []string) {
	if s.leases != nil {
		s.leases.DropMatching(func(key string) bool { return slices.Contains(families, store.Family(key)) })
	}
}
