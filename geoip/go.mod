module github.com/metehq/mete/geoip

go 1.26.0

require (
	github.com/maxmind/mmdbwriter v1.2.0
	github.com/metehq/mete v0.0.0
	github.com/oschwald/maxminddb-golang/v2 v2.9.0
)

require (
	go4.org/netipx v0.0.0-20231129151722-fdeea329fbba // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/metehq/mete => ../
