import CarillonBasics
import CarillonCore
import CarillonWire
import NIOCore

/// Splits a streamed body into lines, each with one update.
struct UpdateLines {
    struct Line: Equatable {
        /// The number of the line, from 1.
        var number: Int
        var text: [UInt8]
    }

    /// The largest number of lines, and of bytes, that are published at once.
    static let atOnce = 512
    static let bytesAtOnce = 256 << 10

    private var lines: [Line] = []
    private var bytes = 0
    private var begun: [UInt8] = []
    private var number = 0

    /// Reads complete lines. Returns true when the limit is reached; the caller must then take the lines before it calls this
    /// function again.
    ///
    /// - Throws: ``Refusal`` for a line that is too long. The lines before it can be taken.
    mutating func read(_ part: inout ByteBuffer) throws(Refusal) -> Bool {
        while part.readableBytes > 0 {
            if isFull { return true }
            let bytes = part.readableBytesView
            guard let end = bytes.firstIndex(of: UInt8(ascii: "\n")) else {
                try add(bytes[...])
                part.moveReaderIndex(forwardBy: bytes.count)
                break
            }
            try add(bytes[..<end])
            part.moveReaderIndex(to: end + 1)
            finishLine()
        }
        return isFull
    }

    private var isFull: Bool { lines.count == Self.atOnce || bytes >= Self.bytesAtOnce }

    /// Completes the last line, which needs no line break.
    mutating func end() throws(Refusal) { finishLine() }

    private mutating func add(_ bytes: ByteBufferView) throws(Refusal) {
        guard begun.count + bytes.count <= Limits.apiBodyBytes else {
            throw Refusal(
                .bodyTooLarge, "Line \(number + 1) is too long; a line must have at most \(Limits.apiBodyBytes) bytes.")
        }
        begun += bytes
    }

    private mutating func finishLine() {
        number += 1
        if begun.last == UInt8(ascii: "\r") { begun.removeLast() }
        if begun.contains(where: { $0 != UInt8(ascii: " ") }) { lines.append(Line(number: number, text: begun)) }
        bytes += begun.count
        begun = []
    }

    mutating func take() -> [Line] {
        defer { (lines, bytes) = ([], 0) }
        return lines
    }
}

/// The results of the lines.
struct TakenUpdates {
    private(set) var accepted = 0
    private(set) var repeated = 0
    private(set) var refused = 0
    private var refusals: [JSONValue] = []

    /// The largest number of refusals that are listed. Further refusals are only counted.
    static let listed = 100

    var count: Int { accepted + repeated + refused }

    mutating func accept(_ receipt: ItemReceipt) { if receipt.isRepeated { repeated += 1 } else { accepted += 1 } }

    mutating func refuse(_ line: Int, _ refusal: Refusal) {
        refused += 1
        guard refusals.count < Self.listed else { return }
        refusals.append([
            "line": .integer(line), "code": .string(refusal.code.rawValue), "detail": .string(refusal.detail),
        ])
    }

    var json: JSONValue {
        [
            "accepted": .integer(accepted), "repeated": .integer(repeated), "refused": .integer(refused),
            "refusals": .array(refusals),
        ]
    }
}
