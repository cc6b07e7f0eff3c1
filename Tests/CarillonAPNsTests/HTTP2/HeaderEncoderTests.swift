import NIOCore
import NIOHPACK
import TestSupport
import Testing

@testable import CarillonAPNs

/// Our header compression, read by NIO's.
struct HeaderEncoderTests {
    let token = ProviderToken(bearer: "bearer " + String(repeating: "a", count: 220), generation: 1)

    static func head(_ fields: [(HeaderName, String)]) -> APNsRequestHead {
        APNsRequestHead(fields: fields.map { HeaderField($0.0, $0.1) })
    }

    static let usual = head([(.apnsTopic, "com.example.app"), (.apnsPushType, "alert"), (.apnsPriority, "10")])

    @Test func `a steady block is small`() throws {
        var encoder = HeaderEncoder(authority: "api.push.apple.com")
        var sizes: [Int] = []
        for number in 0..<10 {
            var block = ByteBuffer()
            encoder.encode(Self.usual, token, path: "/3/device/" + Samples.tokens(10)[number], into: &block)
            sizes.append(block.readableBytes)
        }
        #expect(sizes[0] > 250)
        #expect(sizes.dropFirst().allSatisfy { $0 <= 110 }, "\(sizes)")
    }

    @Test func `random requests are decoded unchanged, with every size of the table`() throws {
        var generator = SeededRandom.forTest()
        for _ in 0..<50 {
            var encoder = HeaderEncoder(
                authority: "api.push.apple.com", indexesAuthorization: Bool.random(using: &generator))
            var decoder = HPACKDecoder(allocator: ByteBufferAllocator(), maxDynamicTableSize: 4096)
            var heads = [Self.usual]
            for round in 0..<200 {
                if Int.random(in: 0..<4, using: &generator) == 0 {
                    heads.append(
                        Self.head([
                            (.apnsTopic, "com.example.app\(Int.random(in: 0..<60, using: &generator))"),
                            (.apnsPushType, "alert"),
                            (.apnsExpiration, String(Int.random(in: 0..<1_000_000, using: &generator))),
                            (.apnsCollapseID, String(repeating: "c", count: Int.random(in: 1...64, using: &generator))),
                            (.apnsID, "11111111-2222-3333-4444-55555555555\(Int.random(in: 0...9, using: &generator))"),
                        ]))
                }
                if Int.random(in: 0..<20, using: &generator) == 0 {
                    let size = [0, 64, 300, 4096].randomElement(using: &generator) ?? 0
                    encoder.peerLimitsTable(to: size)
                    if Bool.random(using: &generator) { encoder.peerLimitsTable(to: 4096) }
                }
                let head = try #require(heads.randomElement(using: &generator))
                let path = "/3/device/" + (Bool.random(using: &generator) ? Samples.token : "AB\(round)é~")
                var block = ByteBuffer()
                encoder.encode(head, token, path: path, into: &block)
                let headers = try decoder.decodeHeaders(from: &block)
                let expected: [(String, String)] =
                    [
                        (":method", "POST"), (":scheme", "https"), (":authority", "api.push.apple.com"), (":path", path),
                        ("authorization", token.bearer),
                    ] + head.fields.map { ($0.name.rawValue, $0.value) }
                #expect(headers.map { [$0.name, $0.value] } == expected.map { [$0.0, $0.1] })
            }
        }
    }

    @Test func `of sizes that changed between two blocks the smallest is announced, then the last`() {
        var encoder = HeaderEncoder(authority: "a")
        for size in [50, 300, 200] { encoder.peerLimitsTable(to: size) }
        var block = ByteBuffer()
        encoder.encode(Self.usual, nil, path: "/", into: &block)
        // RFC 7541 section 6.3: 50 = 0x3F 0x13, 200 = 0x3F 0xA9 0x01.
        #expect(block.readableBytesView.starts(with: [0x3F, 0x13, 0x3F, 0xA9, 0x01]))
    }

    @Test func `the path is never indexed, nor are IDs and expirations`() throws {
        var encoder = HeaderEncoder(authority: "a")
        var first = ByteBuffer()
        let head = Self.head([(.apnsID, "one"), (.apnsExpiration, "5")])
        encoder.encode(head, nil, path: "/3/device/aa", into: &first)
        // From the second request on, the same bytes each time: nothing is added to the table any more.
        var blocks: [ByteBuffer] = []
        for _ in 0..<3 {
            var block = ByteBuffer()
            encoder.encode(Self.head([(.apnsID, "two"), (.apnsExpiration, "6")]), nil, path: "/3/device/bb", into: &block)
            blocks.append(block)
        }
        #expect(blocks[0] == blocks[1])
        #expect(blocks[1] == blocks[2])
        #expect(blocks[0].readableBytesView.contains(0x04))
    }

    @Test func `authorization can be kept out of the table`() {
        var encoder = HeaderEncoder(authority: "a", indexesAuthorization: false)
        for _ in 0..<3 {
            var block = ByteBuffer()
            encoder.encode(Self.usual, token, path: "/", into: &block)
            #expect(block.readableBytes > token.bearer.utf8.count)
        }
    }
}
