// SPDX-License-Identifier: Apache-2.0

package geoip

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/oschwald/maxminddb-golang/v2"
)

// A mark changes when a file is replaced or written.
type mark struct {
	size    int64
	changed time.Time
}

func markOf(path string) (mark, error) {
	info, err := os.Stat(path)
	if err != nil {
		return mark{}, fmt.Errorf("%w: download the file, or correct the setting", err)
	}
	return mark{info.Size(), info.ModTime()}, nil
}

// readFile reads a file into memory. A mapped file would crash the process when another program truncates it.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > MaxFileBytes {
		return nil, fmt.Errorf("more than %d bytes", MaxFileBytes)
	}
	return data, nil
}

// maxProbes is the number of networks that are searched for a first fact, to reject files of another kind.
const maxProbes = 100_000

// readMMDB returns a reader of MMDB files with the fact in their records.
func readMMDB(fact func(maxminddb.Result) (string, bool)) func(path string) (*contents, error) {
	return func(path string) (*contents, error) {
		data, err := readFile(path)
		if err != nil {
			return nil, err
		}
		db, err := maxminddb.OpenBytes(data)
		if err != nil {
			return nil, fmt.Errorf("not an MMDB file: %w", err)
		}
		probes, found := 0, false
		for network := range db.Networks() {
			if _, found = fact(network); found {
				break
			}
			if probes++; probes == maxProbes {
				break
			}
		}
		if !found {
			return nil, fmt.Errorf("the records of %q have no such fact: use a file of another kind", db.Metadata.DatabaseType)
		}
		return &contents{
			find: func(ip netip.Addr) (string, bool) {
				r := db.Lookup(ip)
				if r.Err() != nil || !r.Found() {
					return "", false
				}
				return fact(r)
			},
			note: []any{"type", db.Metadata.DatabaseType, "built", db.Metadata.BuildTime().UTC().Format(time.DateOnly)},
		}, nil
	}
}

// otherTorLines are the lines of the Tor project's list that have no address.
var otherTorLines = [...]string{"ExitNode ", "Published ", "LastStatus "}

func readTorExits(path string) (*contents, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	exits := map[netip.Addr]struct{}{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for number := 1; lines.Scan(); number++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		text = strings.TrimSpace(text)
		if text == "" || startsWithAny(text, otherTorLines[:]) {
			continue
		}
		if rest, ok := strings.CutPrefix(text, "ExitAddress "); ok {
			text, _, _ = strings.Cut(rest, " ")
		}
		ip, err := netip.ParseAddr(text)
		if err != nil || ip.Zone() != "" {
			return nil, fmt.Errorf("line %d: %.60q is no address: write one address per line", number, text)
		}
		exits[ip.Unmap()] = struct{}{}
		if len(exits) > MaxTorExits {
			return nil, fmt.Errorf("line %d: more than %d addresses", number, MaxTorExits)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("not a list of addresses: %w", err)
	}
	if len(exits) == 0 {
		return nil, fmt.Errorf("no addresses: write one address per line")
	}
	return &contents{
		find: func(ip netip.Addr) (string, bool) {
			if _, ok := exits[ip]; ok {
				return "true", true
			}
			return "false", true
		},
		note: []any{"addresses", len(exits)},
	}, nil
}

func startsWithAny(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}
