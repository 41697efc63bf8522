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

// ErrFile is wrapped by the errors of [Restore] about a file that is not what
// [Store.Save] wrote: of another kind, of another version, cut off or changed.
// Nothing of it was used. To begin with full buckets, move it away.
var ErrFile = errors.New("memstore: not a file to restore from")

// Restore returns a store with the buckets that [Store.Save] wrote to path. It
// reads all of the file, and checks all of it, or returns an error: one that
// wraps [fs.ErrNotExist] where there is no such file, [ErrFile] where it cannot
// be trusted, and else the operating system's.
//
// All buckets are kept that are not full by now, even if they are more than
// c.MaxKeys. Time passes while a store is saved, as its clock says. Where that
// shows an earlier instant than when the save began, it was set back: then no
// time has passed, and the instants of all buckets are moved. As windows begin at
// whole multiples of their length, one that is moved counts up to a length longer.
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
		return nil, refuse(path, "it is no regular file")
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
		return nil, refuse(path, reason)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return nil, refuse(path, "it is cut off")
	}
	return s, err
}

// refuse returns the error about a file that is not used.
func refuse(path, reason string) error {
	return fmt.Errorf("%w: %s: %s: move it away to begin with full buckets", ErrFile, path, reason)
}

// damaged is the reason to refuse a file some part of which says what it cannot.
const damaged = "it is damaged"

// readFile fills an empty store, which nobody else uses yet, and which is thrown
// away where there is a reason to refuse the file: that is known at its end.
func (s *Store) readFile(f io.Reader) (reason string, err error) {
	in := bufio.NewReaderSize(f, fullBlock)
	sum := sha256.New()
	line, err := in.ReadSlice('\n')
	if reason := checkLine(line); reason != "" {
		return reason, nil
	}
	if err != nil {
		return "", err
	}
	sum.Write(line)
	r := restoring{store: s}
	for r.next != doneBlock {
		kind, payload, err := r.block(in)
		if err != nil {
			return "", err
		}
		sum.Write(binary.AppendUvarint([]byte{kind}, uint64(len(payload))))
		sum.Write(payload)
		if reason, err := r.read(kind, payload); reason != "" || err != nil {
			return reason, err
		}
	}
	want := make([]byte, sha256.Size)
	if _, err := io.ReadFull(in, want); err != nil {
		return "", err
	}
	if !bytes.Equal(want, sum.Sum(nil)) {
		return damaged + ": its checksum is another", nil
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		return damaged + ": it goes on after its end", nil
	}
	return "", nil
}

// checkLine says what is wrong with the first line of a file, which may be cut
// off.
func checkLine(line []byte) string {
	text, whole := strings.CutSuffix(string(line), "\n")
	if !whole && strings.HasPrefix(fmt.Sprintf("%s%d", formatName, formatVersion), text) {
		return "" // cut off, or empty
	}
	number, ok := strings.CutPrefix(text, formatName)
	version, err := strconv.ParseUint(number, 10, 32)
	switch {
	case !ok || !whole || err != nil:
		return "it is no file of memstore"
	case version != formatVersion:
		return fmt.Sprintf("it has format %d, and this program reads format %d: another version of it wrote the file", version, formatVersion)
	}
	return ""
}

// restoring is the state of reading a file.
type restoring struct {
	store *Store
	buf   []byte
	next  byte // the block that must come, where it is not one of states

	saved, now bucket.Instant
	shift      bucket.Instant // for all instants: 0, or how far the clock was set back
	limits     []named        // by their numbers in the file
	longest    int64          // of the windows and intervals that may begin later than now
}

// doneBlock comes after the tail: none.
const doneBlock = 0xff

// block reads the next block. The payload is valid until the one after.
func (r *restoring) block(in *bufio.Reader) (kind byte, payload []byte, err error) {
	if kind, err = in.ReadByte(); err != nil {
		return 0, nil, err
	}
	length, err := binary.ReadUvarint(in)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) || length > mostBlock {
		return 0, nil, nil // there is no such block
	}
	if err != nil {
		return 0, nil, err
	}
	// Piece by piece: it may say more than there is.
	r.buf = r.buf[:0]
	for left := int(length); left > 0; {
		piece := min(left, fullBlock)
		from := len(r.buf)
		r.buf = append(r.buf, make([]byte, piece)...)
		if _, err := io.ReadFull(in, r.buf[from:]); err != nil {
			return 0, nil, err
		}
		left -= piece
	}
	return kind, r.buf, nil
}

// read uses a block, or says why it cannot.
func (r *restoring) read(kind byte, payload []byte) (reason string, err error) {
	d := decoder{rest: payload}
	switch {
	case kind == headBlock && r.next == 0:
		r.head(&d)
	case kind == statesBlock && r.next == tailBlock:
		for len(d.rest) > 0 && !d.bad {
			r.row(&d)
		}
	case kind == tailBlock && r.next == tailBlock:
		r.tail(&d)
	default:
		return damaged, nil
	}
	if d.bad || len(d.rest) > 0 {
		return damaged, nil
	}
	return "", nil
}

// head begins: the store has the secret of the one that was saved, and its
// clock is compared with that one's.
func (r *restoring) head(d *decoder) {
	r.saved = d.instant(0)
	r.store.hasher.setSecret([secretBytes]byte(d.bytes(secretBytes)))
	r.now = r.store.instant()
	r.shift = min(r.now-r.saved, 0)
	r.next = tailBlock
}

// row reads one row and keeps it, unless it is full by now.
func (r *restoring) row(d *decoder) {
	s, h := r.store, d.hash()
	row, family := make(bucket.Row, 0, bucket.MaxAccounts), ""
	n := d.bytes(1)[0]
	d.bad = d.bad || n < 1 || n > bucket.MaxAccounts
	for range n {
		if d.bad {
			return
		}
		name := r.limit(d)
		a := bucket.Account{Limit: name.limit}
		d.bad = d.bad || len(row) > 0 && name.family != family
		family = name.family
		a.State = d.state(&a.Limit, r.saved)
		d.bad = d.bad || slices.ContainsFunc(row, func(b bucket.Account) bool { return a.Limit == b.Limit })
		if d.bad {
			return
		}
		if r.shift != 0 {
			move(&a.State, &a.Limit, r.shift)
		}
		row = append(row, a)
	}
	if forgettable(row, r.now) {
		return
	}
	for i := range row {
		s.ahead = max(s.ahead, row[i].State.AsOf)
	}
	sh := s.shard(h)
	if sl, _ := sh.table.Load().find(h); sl != nil {
		d.bad = true // twice
		return
	}
	sl := s.room(sh, h, r.now, math.MaxInt64)
	if len(row) > 1 {
		s.saveRow(sl, h, family, row, 0)
		return
	}
	a := &row[0]
	if s.steady && a.Limit.Algorithm() == bucket.Continuous {
		// As of now it fits its slot in one word: see load.
		a.State, _ = a.Limit.Spend(a.State, r.now, 0, 0)
	}
	s.save(sl, h, family, &a.Limit, &a.State, 0)
}

// limit reads the number of a limit, and the limit where it is new.
func (r *restoring) limit(d *decoder) named {
	i := d.number(uint64(len(r.limits)))
	if d.bad {
		return named{}
	}
	if i == uint64(len(r.limits)) {
		name := d.limit()
		r.limits = append(r.limits, name)
		if _, p := name.limit.Refill(); name.limit.Algorithm() != bucket.Continuous {
			r.longest = max(r.longest, p)
		}
	}
	return r.limits[i]
}

// tail ends: full buckets were left out, so all shards have forgotten some.
func (r *restoring) tail(d *decoder) {
	overload, forgot := bucket.Instant(d.number(uint64(mostInstant))), bucket.Instant(d.number(uint64(mostInstant)))
	if overload > 0 {
		overload += r.saved + r.shift
		if r.shift != 0 {
			overload += bucket.Instant(r.longest) // see move
		}
		r.store.overload.Store(int64(overload))
	}
	for i := range r.store.shards {
		sh := &r.store.shards[i]
		sh.forgot = max(sh.forgot, r.saved+r.shift+forgot, r.now)
	}
	r.store.ahead = max(r.store.ahead, r.saved+r.shift+forgot, overload)
	r.next = doneBlock
}

// move moves a state's instant by shift, which is negative. A sliding window must
// begin at a whole multiple of its length, and must not begin earlier than that:
// it is the next one. Stepped limits do the same by themselves, as their intervals
// may begin elsewhere.
func move(state *bucket.State, l *bucket.Limit, shift bucket.Instant) {
	state.AsOf += shift
	switch l.Algorithm() {
	case bucket.SlidingWindow:
		_, p := l.Refill()
		if into := state.AsOf % bucket.Instant(p); into > 0 {
			state.AsOf += bucket.Instant(p) - into
		} else {
			state.AsOf -= into
		}
	case bucket.SlidingLog:
		entries := state.Log.Entries()
		for i := range entries {
			entries[i].At += shift
		}
	}
}
