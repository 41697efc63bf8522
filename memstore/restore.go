// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/bucket"
)

// ErrFile is wrapped by the errors of [Restore] about a file of another kind or version, or a truncated or
// damaged one. Restore uses no part of such a file. To start with full buckets, move the file away.
var ErrFile = errors.New("memstore: cannot restore from file")

// Restore returns a store with the buckets that [Store.Save] wrote to path. It validates the whole file first.
// The error wraps [fs.ErrNotExist] if there is no file, and [ErrFile] if the file is invalid. Other errors are
// the operating system's.
//
// Restore keeps all buckets that are not full by now, even if there are more than c.MaxKeys. The time since the
// save counts as elapsed. If the clock shows an earlier time than the start of the save, no time has elapsed:
// Restore moves the instants of all buckets back. Windows must start at multiples of their length, so a moved
// window may last up to one length longer.
func Restore(path string, c Config) (*Store, error) {
	s, err := restore(path, c)
	if err != nil && !errors.Is(err, ErrFile) {
		err = fmt.Errorf("memstore: restore: %w", err)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func restore(path string, c Config) (*Store, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fileError(path, "file is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s, err := New(c)
	if err != nil {
		return nil, err
	}
	reason, err := s.readFile(f)
	switch {
	case reason != "":
		return nil, fileError(path, reason)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fileError(path, "file is truncated")
	}
	return s, err
}

func fileError(path, reason string) error {
	return fmt.Errorf("%w: %s: %s: move it away to start with full buckets", ErrFile, path, reason)
}

const damaged = "file is damaged"

// readFile fills an empty store. The caller discards the store if there is a reason to reject the file, which
// may be found only at its end.
func (s *Store) readFile(f io.Reader) (reason string, err error) {
	in := bufio.NewReaderSize(f, flushSize)
	sum := sha256.New()
	line, err := in.ReadSlice('\n')
	if reason := checkHeader(line); reason != "" {
		return reason, nil
	}
	if err != nil {
		return "", err
	}
	sum.Write(line)
	r := restorer{store: s}
	for r.next != doneBlock {
		kind, payload, err := r.readBlock(in)
		if err != nil {
			return "", err
		}
		sum.Write(binary.AppendUvarint([]byte{kind}, uint64(len(payload))))
		sum.Write(payload)
		if reason, err := r.apply(kind, payload); reason != "" || err != nil {
			return reason, err
		}
	}
	want := make([]byte, sha256.Size)
	if _, err := io.ReadFull(in, want); err != nil {
		return "", err
	}
	if !bytes.Equal(want, sum.Sum(nil)) {
		return damaged + ": checksum mismatch", nil
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		return damaged + ": data after the end", nil
	}
	return "", nil
}

// checkHeader returns the reason to reject the first line of a file, which may be truncated.
func checkHeader(line []byte) string {
	text, whole := strings.CutSuffix(string(line), "\n")
	if !whole && strings.HasPrefix(fmt.Sprintf("%s%d", formatName, formatVersion), text) {
		return "" // truncated or empty
	}
	number, ok := strings.CutPrefix(text, formatName)
	version, err := strconv.ParseUint(number, 10, 32)
	switch {
	case !ok || !whole || err != nil:
		return "file is not in the memstore format"
	case version != formatVersion:
		return fmt.Sprintf("file has format %d, and this program reads format %d: a different version wrote it", version, formatVersion)
	}
	return ""
}

// A restorer is the state of reading a file.
type restorer struct {
	store *Store
	buf   []byte
	next  byte // the required next block, other than blocks of states

	saved, now bucket.Instant
	shift      bucket.Instant // of all instants: 0, or negative if the clock was set back.
	limits     []familyLimit  // indexed by their numbers in the file
	longest    int64          // longest window or interval, which may start later than now
}

const doneBlock = 0xff

func (r *restorer) readBlock(in *bufio.Reader) (kind byte, payload []byte, err error) {
	if kind, err = in.ReadByte(); err != nil {
		return 0, nil, err
	}
	length, err := binary.ReadUvarint(in)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) || length > maxBlock {
		return 0, nil, nil // invalid block
	}
	if err != nil {
		return 0, nil, err
	}
	// Read piece by piece: the length may exceed the file.
	r.buf = r.buf[:0]
	for left := int(length); left > 0; {
		piece := min(left, flushSize)
		from := len(r.buf)
		r.buf = append(r.buf, make([]byte, piece)...)
		if _, err := io.ReadFull(in, r.buf[from:]); err != nil {
			return 0, nil, err
		}
		left -= piece
	}
	return kind, r.buf, nil
}

func (r *restorer) apply(kind byte, payload []byte) (reason string, err error) {
	d := decoder{rest: payload}
	switch {
	case kind == headBlock && r.next == 0:
		r.readHead(&d)
	case kind == statesBlock && r.next == tailBlock:
		for len(d.rest) > 0 && !d.bad {
			r.readRow(&d)
		}
	case kind == penaltiesBlock && r.next == tailBlock:
		for len(d.rest) > 0 && !d.bad {
			r.readPenalty(&d)
		}
	case kind == slotsBlock && r.next == tailBlock:
		for len(d.rest) > 0 && !d.bad {
			r.readSlots(&d)
		}
	case kind == tailBlock && r.next == tailBlock:
		r.readTail(&d)
	default:
		return damaged, nil
	}
	if d.bad || len(d.rest) > 0 {
		return damaged, nil
	}
	return "", nil
}

// readHead copies the secret of the saved store and compares its clock with the current one.
func (r *restorer) readHead(d *decoder) {
	r.saved = d.instant(0)
	r.store.hasher.setSecret([secretBytes]byte(d.bytes(secretBytes)))
	r.now = r.store.instant()
	r.shift = min(r.now-r.saved, 0)
	r.next = tailBlock
}

// readRow reads one row and stores it unless it is full by now.
func (r *restorer) readRow(d *decoder) {
	s, h := r.store, d.hash()
	row, family := make(bucket.Row, 0, bucket.MaxAccounts), ""
	n := d.bytes(1)[0]
	d.bad = d.bad || n < 1 || n > bucket.MaxAccounts
	for range n {
		if d.bad {
			return
		}
		name := r.readLimit(d)
		a := bucket.Account{Limit: name.limit}
		d.bad = d.bad || len(row) > 0 && name.family != family
		family = name.family
		a.State = d.state(&a.Limit, r.saved)
		d.bad = d.bad || slices.ContainsFunc(row, func(b bucket.Account) bool { return a.Limit == b.Limit })
		if d.bad {
			return
		}
		if r.shift != 0 {
			shiftState(&a.State, &a.Limit, r.shift)
		}
		row = append(row, a)
	}
	if isEvictable(row, r.now) {
		return
	}
	for i := range row {
		s.latestRestored = max(s.latestRestored, row[i].State.AsOf)
	}
	sh := s.shard(h)
	if sl, _ := sh.table.Load().find(h); sl != nil {
		d.bad = true // duplicate
		return
	}
	sl := s.allocate(sh, h, r.now, math.MaxInt64)
	if len(row) > 1 {
		s.saveRow(sl, h, family, row, 0)
		return
	}
	a := &row[0]
	if s.steady && a.Limit.Algorithm() == bucket.AlgorithmContinuous {
		// At now, the state fits one word: see load.
		a.State, _ = a.Limit.Spend(a.State, r.now, 0, 0)
	}
	s.save(sl, h, family, &a.Limit, &a.State, 0)
}

func (r *restorer) readLimit(d *decoder) familyLimit {
	i := d.number(uint64(len(r.limits)))
	if d.bad {
		return familyLimit{}
	}
	if i == uint64(len(r.limits)) {
		name := d.limit()
		r.limits = append(r.limits, name)
		if _, p := name.limit.Refill(); name.limit.Algorithm() != bucket.AlgorithmContinuous {
			r.longest = max(r.longest, p)
		}
	}
	return r.limits[i]
}

// readTail finishes: full buckets were left out of the file, so all shards count as having evicted some.
func (r *restorer) readTail(d *decoder) {
	overload, forgot := bucket.Instant(d.number(uint64(maxInstant))), bucket.Instant(d.number(uint64(maxInstant)))
	if overload > 0 {
		overload += r.saved + r.shift
		if r.shift != 0 {
			overload += bucket.Instant(r.longest) // see shiftState
		}
		r.store.overload.Store(int64(overload))
	}
	for i := range r.store.shards {
		sh := &r.store.shards[i]
		sh.evictedAt = max(sh.evictedAt, r.saved+r.shift+forgot, r.now)
	}
	r.store.latestRestored = max(r.store.latestRestored, r.saved+r.shift+forgot, overload)
	r.next = doneBlock
}

// shiftState moves a state's instant by shift, which is negative. A sliding window moves to the next multiple
// of its length. Stepped limits align their instant themselves.
func shiftState(state *bucket.State, l *bucket.Limit, shift bucket.Instant) {
	state.AsOf += shift
	switch l.Algorithm() {
	case bucket.AlgorithmSlidingWindow:
		_, p := l.Refill()
		if into := state.AsOf % bucket.Instant(p); into > 0 {
			state.AsOf += bucket.Instant(p) - into
		} else {
			state.AsOf -= into
		}
	case bucket.AlgorithmSlidingLog:
		entries := state.Log.Entries()
		for i := range entries {
			entries[i].At += shift
		}
	}
}
