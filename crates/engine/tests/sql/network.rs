//! Addresses of hosts, networks and devices. The answers are PostgreSQL's.

use crate::common::{Fixture, query, run};

#[test]
fn addresses_are_converted_and_compared() {
    let fixture = Fixture::new("");
    let mut s = fixture.session();
    for (expression, expected) in [
        (
            "'1.2.3.4'::inet, '1.2.3.4/8'::inet::cidr, '10/8'::cidr::inet",
            "1.2.3.4|1.0.0.0/8|10.0.0.0/8",
        ),
        (
            "'1.2.3.4'::inet::text, '1.2.3.4'::inet::varchar, '1.2.3.4'::inet::name",
            "1.2.3.4/32|1.2.3.4/32|1.2.3.4",
        ),
        (
            "'x' || '1.2.3.4'::inet, concat('1.2.3.4'::inet)",
            "x1.2.3.4/32|1.2.3.4",
        ),
        (
            "'10.0.0.0/8'::cidr = '10.0.0.0/8'::inet, '9.0.0.0'::inet < '10/8'::cidr",
            "t|t",
        ),
        (
            "pg_typeof(coalesce('10/8'::cidr, '1.2.3.4'::inet)), pg_typeof(array['1.2.3.4'::inet, '10/8'::cidr])",
            "inet|inet[]",
        ),
        (
            "abbrev('10.1.0.0/16'::cidr), abbrev('10.1.0.0/16'::inet), abbrev('10.1.0.0/16')",
            "10.1/16|10.1.0.0/16|10.1.0.0/16",
        ),
        (
            "host('1.2.3.4/8'), text(inet '1.2.3.4'), masklen('1.2.3.4/8'), family('::1')",
            "1.2.3.4|1.2.3.4/32|8|6",
        ),
        (
            "netmask('1.2.3.4/20'), hostmask('1.2.3.4/20'), broadcast('1.2.3.4/20'), network('1.2.3.4/20')",
            "255.255.240.0|0.0.15.255|1.2.15.255/20|1.2.0.0/20",
        ),
        (
            "hostmask('::/96'), netmask('::/0'), broadcast('1::/112'::cidr)",
            "::255.255.255.255|::|1::ffff/112",
        ),
        (
            "set_masklen('1.2.3.4/8', -1), set_masklen('1.2.3.0/24'::cidr, 16)",
            "1.2.3.4|1.2.0.0/16",
        ),
        (
            "inet_merge('192.168.1.5/24', '192.168.2.5/24'), inet_same_family('1.2.3.4', '::1')",
            "192.168.0.0/22|f",
        ),
        (
            "'10.1.2.3'::inet << '10/8', '10/8'::cidr <<= '10/8', inet '10/8' >> '10/8', inet '10/8' >>= '10.1/16', inet '10/8' && '10.1/16'",
            "t|t|f|t|t",
        ),
        (
            "~'1.2.3.4/8'::inet, '1.2.3.4/8'::inet & '255.255.255.255/16', '1.2.3.4/24'::inet | '1.0.0.255/8'",
            "254.253.252.251/8|1.2.3.4/16|1.2.3.255/24",
        ),
        (
            "'1.2.3.4'::inet + 5, 5 + '1.2.3.4'::inet, '1.2.3.4'::inet - 5, '1.2.3.4'::inet - '1.2.3.1'",
            "1.2.3.9|1.2.3.9|1.2.2.255|3",
        ),
        (
            "cidr('10'), inet('1.2.3.4'), macaddr('1:2:3:4:5:6')",
            "10.0.0.0/8|1.2.3.4|01:02:03:04:05:06",
        ),
        (
            "trunc('08:00:2b:01:02:03'::macaddr), ~'08:00:2b:01:02:03'::macaddr, '08:00:2b:01:02:03'::macaddr::macaddr8",
            "08:00:2b:00:00:00|f7:ff:d4:fe:fd:fc|08:00:2b:ff:fe:01:02:03",
        ),
        (
            "macaddr8_set7bit('00:34:56:ab:cd:ef'), macaddr8 '08:00:2b:ff:fe:01:02:03' = macaddr '08:00:2b:01:02:03'",
            "02:34:56:ff:fe:ab:cd:ef|t",
        ),
        (
            "inet_client_addr(), inet_client_port(), inet_server_addr(), inet_server_port()",
            "|||",
        ),
    ] {
        assert_eq!(
            query(&mut s, &format!("select {expression}")),
            expected,
            "{expression}"
        );
    }
    for (expression, state) in [
        ("'1.2.3.4/8'::cidr", "22P02"),
        ("cidr('1.2.3.4/8')", "22P02"),
        ("'1.2.3'::inet", "22P02"),
        ("'1.2.3.4'::inet = '1.2.3.4'::text", "42883"),
        ("set_masklen('1.2.3.4'::inet, 33)", "22023"),
        ("'255.255.255.255'::inet + 1", "22003"),
        ("'1.2.3.4'::inet - '::1'::inet", "22023"),
        ("inet_merge('1.2.3.4', '::1')", "22023"),
        ("'100:0:0:0:0:0'::macaddr", "22003"),
        ("'08:00:2b:01:02:03:04:05'::macaddr8::macaddr", "22003"),
        ("1::inet", "42846"),
    ] {
        assert_eq!(
            run(&mut s, &format!("select {expression}")),
            format!("ERROR {state}"),
            "{expression}"
        );
    }
}

#[test]
fn addresses_are_keys_and_come_back() {
    let fixture = Fixture::new(
        "create table hosts (address inet primary key, net cidr, card macaddr unique, long macaddr8, others inet[]);
         create index on hosts (net cidr_ops); create index on hosts (net desc, long)",
    );
    let mut s = fixture.session();
    query(
        &mut s,
        "insert into hosts select ('10.0.0.0'::inet + i)::inet, cidr(set_masklen('10.0.0.0'::inet + i, 28)),
            ('0:0:0:0:0:' || to_hex(i))::macaddr, ('0:0:0:0:0:' || to_hex(i))::macaddr::macaddr8,
            array['::1', null, ('1.2.3.0'::inet + i)]
         from generate_series(0, 200) i",
    );
    query(
        &mut s,
        "insert into hosts values ('::1/64', '::/0', 'ff:0:0:0:0:0', null, '{}')",
    );
    query(&mut s, "analyze hosts");
    assert_eq!(
        query(
            &mut s,
            "select address, net, card, long, others from hosts where address = '10.0.0.33'"
        ),
        "10.0.0.33|10.0.0.32/28|00:00:00:00:00:21|00:00:00:ff:fe:00:00:21|{::1,NULL,1.2.3.33}"
    );
    assert_eq!(
        query(
            &mut s,
            "select address from hosts where net = '::/0' and long is null"
        ),
        "::1/64"
    );
    assert_eq!(
        query(
            &mut s,
            "select count(*), min(address), max(address), max(net) from hosts where address < '10.0.0.5'"
        ),
        "5|10.0.0.0|10.0.0.4|10.0.0.0/28"
    );
    assert_eq!(
        query(&mut s, "select address from hosts order by address desc limit 2"),
        "::1/64, 10.0.0.200"
    );
    assert_eq!(
        query(
            &mut s,
            "select net, count(*) from hosts where net >= '10.0.0.192/28' group by net order by net"
        ),
        "10.0.0.192/28|9, ::/0|1"
    );
    assert_eq!(
        query(
            &mut s,
            "select count(*) from hosts a join hosts b on a.card = b.card and a.address << b.net"
        ),
        "202"
    );
    assert_eq!(
        query(
            &mut s,
            "select others[3] from hosts where card = '00-00-00-00-00-07'"
        ),
        "1.2.3.7"
    );
    assert_eq!(
        run(&mut s, "insert into hosts values ('10.0.0.1')"),
        "ERROR 23505"
    );
    assert_eq!(
        query(
            &mut s,
            "select opcname from pg_index i, unnest(indclass) c, pg_opclass o
             where indrelid = 'hosts'::regclass and o.oid = c order by 1"
        ),
        "cidr_ops, inet_ops, inet_ops, macaddr8_ops, macaddr_ops"
    );
}
