// SPDX-License-Identifier: Apache-2.0

package geoip

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/oschwald/maxminddb-golang/v2"

	"github.com/metehq/mete/internal/follow"
	"github.com/metehq/mete/policy"
)

// A Database has the facts of its files. Create one with [Open]. It is safe for concurrent use.
type Database struct {
	config Config
	files  []*file

	country, asn *file // an MMDB file each; nil without one
	tor          *file

	loop    follow.Loop
	stop    context.CancelFunc
	looking sync.WaitGroup
}

// Open reads the files and follows their changes until the Database is closed. A file that is missing or invalid is an
// error.
func Open(config Config) (*Database, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	d := &Database{config: config}
	for _, f := range []struct {
		file **file
		path string
		kind string
		read func(path string) (*contents, error)
	}{
		{&d.country, config.Country, "country", readMMDB(countryOf)},
		{&d.asn, config.ASN, "asn", readMMDB(asnOf)},
		{&d.tor, config.TorExits, "tor_exits", readTorExits},
	} {
		if f.path == "" {
			continue
		}
		*f.file = &file{path: f.path, kind: f.kind, read: f.read, log: config.Logger}
		d.files = append(d.files, *f.file)
	}
	if _, err := d.read(context.Background(), true); err != nil {
		return nil, err
	}
	d.loop = follow.Loop{Interval: config.Interval, Read: d.read, Report: d.report}
	ctx, stop := context.WithCancel(context.Background())
	d.stop = stop
	d.looking.Go(func() { d.loop.Run(ctx) })
	return d, nil
}

// Close stops following the files. [Database.Find] keeps using the last ones.
func (d *Database) Close() {
	d.stop()
	d.looking.Wait()
}

// Reload reads all files again, also unchanged ones. After an error, the last valid files stay active.
func (d *Database) Reload(ctx context.Context) error { return d.loop.Force(ctx) }

func (d *Database) read(_ context.Context, forced bool) (changed bool, err error) {
	var failed []error
	for _, f := range d.files {
		one, err := f.refresh(forced)
		changed = changed || one
		if err != nil {
			failed = append(failed, fmt.Errorf("geoip: %s: %w", f.kind, err))
		}
	}
	return changed, errors.Join(failed...)
}

func (d *Database) report(news follow.News, err error) {
	switch news {
	case follow.NewsFailed:
		d.config.Logger.Error("cannot read geoip file, keeping the last valid one", "err", err)
	case follow.NewsRecovered:
		d.config.Logger.Info("geoip files readable again")
	}
}

// Has reports whether the Database has a file for the attribute.
func (d *Database) Has(a policy.Attribute) bool { return d.fileOf(a) != nil }

func (d *Database) fileOf(a policy.Attribute) *file {
	if a.Source != policy.SourceNetwork {
		return nil
	}
	switch a.Name {
	case "country":
		return d.country
	case "asn":
		return d.asn
	case "tor":
		return d.tor
	}
	return nil
}

// Find returns the value of ip:country, ip:asn or ip:tor for an address. It returns false for an address without an
// entry, for an invalid address, and for other attributes. It fits the field
// Find of [policy.Facts].
func (d *Database) Find(a policy.Attribute, address string) (value string, ok bool) {
	f := d.fileOf(a)
	if f == nil {
		return "", false
	}
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return "", false
	}
	return f.active.Load().find(ip.Unmap().WithZone(""))
}

// contents are the facts of one file.
type contents struct {
	find func(netip.Addr) (string, bool)
	note []any // attributes for the log
}

// A file is read again after it has changed.
type file struct {
	path, kind string
	read       func(path string) (*contents, error)
	log        interface{ Info(string, ...any) }
	mark       mark // of the active contents
	active     atomic.Pointer[contents]
}

// refresh reads the file if it has changed since the last successful read.
func (f *file) refresh(forced bool) (changed bool, err error) {
	now, err := markOf(f.path)
	if err != nil {
		return false, err
	}
	if !forced && now == f.mark {
		return false, nil
	}
	c, err := f.read(f.path)
	if err != nil {
		return false, fmt.Errorf("%s: %w", f.path, err)
	}
	f.active.Store(c)
	f.mark = now
	f.log.Info("geoip file active", append([]any{"kind", f.kind, "file", f.path}, c.note...)...)
	return true, nil
}

// countryOf reads the country code of a record. Publishers use different names for it.
func countryOf(r maxminddb.Result) (string, bool) {
	for _, path := range [][]any{{"country", "iso_code"}, {"country_code"}, {"country"}} {
		var code string
		if err := r.DecodePath(&code, path...); err == nil && len(code) == 2 {
			return strings.ToUpper(code), true
		}
	}
	return "", false
}

// asnOf reads the number of the autonomous system of a record.
func asnOf(r maxminddb.Result) (string, bool) {
	for _, path := range [][]any{{"autonomous_system_number"}, {"asn"}} {
		var number uint32
		if err := r.DecodePath(&number, path...); err == nil && number > 0 {
			return strconv.FormatUint(uint64(number), 10), true
		}
		var text string
		if err := r.DecodePath(&text, path...); err != nil {
			continue
		}
		if n, err := strconv.ParseUint(strings.TrimPrefix(text, "AS"), 10, 32); err == nil && n > 0 {
			return strconv.FormatUint(n, 10), true
		}
	}
	return "", false
}
