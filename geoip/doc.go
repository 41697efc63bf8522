// SPDX-License-Identifier: Apache-2.0

// Package geoip supplies facts about client addresses to a policy: ip:country, ip:asn and ip:tor. The data comes from
// files of the operator.
//
//	db, err := geoip.Open(geoip.Config{Country: "GeoLite2-Country.mmdb", ASN: "GeoLite2-ASN.mmdb", TorExits: "exits.txt"})
//	…
//	matcher, err := policy.Load(file, policy.Options{Facts: policy.Facts{Find: db.Find}})
//
// Country and ASN are MMDB files, as MaxMind, DB-IP and IPinfo publish them. Records have country.iso_code,
// country_code, or country as a code of two letters. The number of a network is in autonomous_system_number, or in asn
// as a number or as AS64500. TorExits is a list of addresses: see [Config].
//
// An address without an entry has no fact: the attribute is missing, and on_missing of each rule decides. An address
// is in the list of Tor exits or not, so ip:tor always has a value.
package geoip
