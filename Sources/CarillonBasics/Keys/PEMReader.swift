/// Reads the blocks of a text by the lax rules of RFC 7468 section 2.
///
/// White space is ignored everywhere: lines can be indented and of any length, and a block can be on one line. Text outside of
/// blocks is ignored. A block on a line that starts with `#`, `;` or `//` is ignored too.
///
/// Beyond these rules, characters can be escaped as in JSON (`\n`, `\r`, `\t`, `\/` and `\u002B`). Environment variables often
/// use this form. Byte-order marks are ignored.
package enum PEMReader {
    private static let begin = Array("-----BEGIN ".unicodeScalars)
    private static let end = Array("-----END ".unicodeScalars)
    private static let hyphens = Array("-----".unicodeScalars)
    private static let longestLabel = 64

    /// Returns all blocks in their order. A block that cannot be decoded has a ``PEMBlock/damage``.
    package static func blocks(in text: String) -> [PEMBlock] {
        let scalars = Array(text.unicodeScalars)
        var blocks: [PEMBlock] = []
        var line = PEMLine()
        var place = 0
        while let start = find(begin, in: scalars, from: place) {
            line.pass(scalars[place..<start])
            let labelStart = start + begin.count
            guard !line.isComment else {
                place = labelStart
                continue
            }
            let (read, next) = readBlock(in: scalars, from: labelStart)
            var block = read
            block.isInText = line.hasText
            blocks.append(block)
            // The position after a block counts as the start of a line.
            line = PEMLine(hasText: block.damage != nil)
            // A block without an end can be followed by line breaks before the next block.
            if block.damage == .endMissing { line.pass(scalars[labelStart..<next]) }
            place = next
        }
        return blocks
    }

    /// Decodes base64 with padding. White space is ignored.
    package static func base64(_ text: String) -> Result<[UInt8], Fault> {
        switch words(in: Array(text.unicodeScalars)[...]) {
        case .failure(let fault): .failure(fault)
        case .success(let words): decode(Array(words.joined()))
        }
    }

    package struct Fault: Error, Equatable, Sendable {
        package var damage: PEMBlock.Damage
    }

    /// Returns the block whose label begins at a position, and the position from which the next block is searched.
    private static func readBlock(in scalars: [Unicode.Scalar], from start: Int) -> (PEMBlock, next: Int) {
        guard let labelEnd = find(hyphens, in: scalars, from: start) else {
            return (PEMBlock(label: "", damage: .labelUnreadable), start)
        }
        guard let label = readLabel(scalars[start..<labelEnd]) else {
            let isOfOtherKind = isLabelOfOtherKind(scalars[start..<labelEnd])
            return (PEMBlock(label: "", damage: isOfOtherKind ? .labelUnknown : .labelUnreadable), start)
        }
        let bodyStart = labelEnd + hyphens.count
        guard let bodyEnd = find(hyphens, in: scalars, from: bodyStart) else {
            return (PEMBlock(label: label, damage: .endMissing), scalars.count)
        }
        let endStart = bodyEnd + end.count
        guard scalars[bodyEnd...].starts(with: end), let endEnd = find(hyphens, in: scalars, from: endStart),
            let endLabel = readLabel(scalars[endStart..<endEnd])
        else { return (PEMBlock(label: label, damage: .endMissing), bodyEnd) }
        let next = endEnd + hyphens.count
        guard endLabel == label else { return (PEMBlock(label: label, damage: .endDiffers(endLabel)), next) }
        return (decoded(scalars[bodyStart..<bodyEnd], label: label), next)
    }

    /// Returns the label with single spaces; nil for a text that cannot be a label, and that could be a part of a key.
    private static func readLabel(_ scalars: ArraySlice<Unicode.Scalar>) -> String? {
        guard scalars.count <= longestLabel,
            scalars.allSatisfy(isOfLabel)
        else { return nil }
        let words = scalars.split(separator: " ").map { word in
            var text = String.UnicodeScalarView()
            text.append(contentsOf: word)
            return String(text)
        }
        return words.isEmpty ? nil : words.joined(separator: " ")
    }

    /// Whether a text that ``readLabel(_:)`` rejects is a label (RFC 7468 section 3), but not the label of a key or a
    /// certificate.
    private static func isLabelOfOtherKind(_ scalars: ArraySlice<Unicode.Scalar>) -> Bool {
        guard !scalars.isEmpty, scalars.count <= longestLabel,
            scalars.allSatisfy({ (0x20...0x7E).contains($0.value) && $0 != "\\" })
        else { return false }
        var text = String.UnicodeScalarView()
        text.append(contentsOf: scalars)
        let label = String(text).uppercased()
        return !["PRIVATE", "PUBLIC", "CERTIFICATE"].contains { label.contains($0) }
    }

    private static func isOfLabel(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "A"..."Z", "0"..."9", " ": true
        default: false
        }
    }

    private static func isOfBase64(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "A"..."Z", "a"..."z", "0"..."9", "+", "/", "=": true
        default: false
        }
    }

    private static func decoded(_ body: ArraySlice<Unicode.Scalar>, label: String) -> PEMBlock {
        var block = PEMBlock(label: label)
        switch words(in: body) {
        case .failure(let fault):
            block.damage = fault.damage
        case .success(let words):
            let headerWords = headerCount(of: words)
            block.headers = headers(words[..<headerWords])
            switch decode(Array(words[headerWords...].joined())) {
            case .failure(let fault): block.damage = fault.damage
            case .success(let bytes): block.bytes = bytes
            }
        }
        if block.damage == nil, block.headers.isEmpty { block.damage = DERElement.cut(block.bytes) }
        return block
    }

    /// Splits a text at white space and byte-order marks. These characters can be escaped as in JSON.
    private static func words(in scalars: ArraySlice<Unicode.Scalar>) -> Result<[[Unicode.Scalar]], Fault> {
        var words: [[Unicode.Scalar]] = []
        var word: [Unicode.Scalar] = []
        var place = scalars.startIndex
        while place < scalars.endIndex {
            var scalar = scalars[place]
            if scalar == "\\" {
                // A value that was escaped twice has two backslashes.
                while place + 1 < scalars.endIndex, scalars[place + 1] == "\\" { place += 1 }
                guard let escape = unescaped(scalars[(place + 1)...]) else {
                    return .failure(Fault(damage: .characterInvalid(scalar)))
                }
                scalar = escape.scalar
                place += escape.length
            }
            if !PEMLine.isBlank(scalar) {
                word.append(scalar)
            } else if !word.isEmpty {
                words.append(word)
                word = []
            }
            place += 1
        }
        if !word.isEmpty { words.append(word) }
        return .success(words)
    }

    /// Returns the character that the characters after a backslash mean in JSON, and their number; nil for an escape that blocks
    /// do not use.
    private static func unescaped(_ scalars: ArraySlice<Unicode.Scalar>) -> (scalar: Unicode.Scalar, length: Int)? {
        guard let first = scalars.first else { return nil }
        switch first {
        case "n": return ("\n", 1)
        case "r": return ("\r", 1)
        case "t": return ("\t", 1)
        case "/": return ("/", 1)
        case "u":
            let digits = scalars.dropFirst().prefix(4).compactMap { Character($0).hexDigitValue }
            guard digits.count == 4, let scalar = Unicode.Scalar(UInt32(digits.reduce(0) { $0 << 4 | $1 })),
                isOfBase64(scalar) || PEMLine.isBlank(scalar)
            else { return nil }
            return (scalar, 5)
        default: return nil
        }
    }

    /// Returns the number of words up to the last header's value. A header is a name, a colon and one word.
    private static func headerCount(of words: [[Unicode.Scalar]]) -> Int {
        guard let last = words.lastIndex(where: { $0.contains(":") }) else { return 0 }
        return min(words.count, words[last].last == ":" ? last + 2 : last + 1)
    }

    private static func headers(_ words: ArraySlice<[Unicode.Scalar]>) -> [String] {
        var headers: [String] = []
        var isNameAlone = false
        for word in words {
            var view = String.UnicodeScalarView()
            view.append(contentsOf: word)
            if isNameAlone, let name = headers.popLast() {
                headers.append(name + " " + String(view))
            } else {
                headers.append(String(view))
            }
            isNameAlone = word.last == ":"
        }
        return headers
    }

    private static func decode(_ base64: [Unicode.Scalar]) -> Result<[UInt8], Fault> {
        var text: [UInt8] = []
        text.reserveCapacity(base64.count)
        for scalar in base64 {
            guard isOfBase64(scalar) else { return .failure(Fault(damage: .characterInvalid(scalar))) }
            text.append(UInt8(truncatingIfNeeded: scalar.value))
        }
        guard !text.isEmpty else { return .failure(Fault(damage: .empty)) }
        guard let bytes = Base64URL.decodeLeniently(String(decoding: text, as: UTF8.self)) else {
            let isOfWholeGroups = text.count.isMultiple(of: 4)
            return .failure(Fault(damage: isOfWholeGroups ? .paddingInvalid : .lengthInvalid(text.count)))
        }
        return .success(bytes)
    }

    private static func find(_ pattern: [Unicode.Scalar], in scalars: [Unicode.Scalar], from start: Int) -> Int? {
        guard scalars.count >= start + pattern.count else { return nil }
        return (start...(scalars.count - pattern.count)).first { place in
            scalars[place] == pattern[0] && scalars[place..<place + pattern.count].elementsEqual(pattern)
        }
    }
}
