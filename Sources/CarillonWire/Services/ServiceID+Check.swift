extension ServiceID {
    /// - Throws: ``Refusal`` with ``ErrorCode/serviceIDInvalid``.
    package static func checked(_ text: String) throws(Refusal) -> ServiceID {
        guard let id = ServiceID(text) else {
            throw Refusal(.serviceIDInvalid, problem(in: text) ?? "The id of a service is not valid.")
        }
        return id
    }

    /// Returns a sentence that describes the fault in the ID of a service and names the character; nil if the ID is valid.
    package static func problem(in text: String) -> String? {
        guard ServiceID(text) == nil else { return nil }
        let example = "A valid id is a domain in reverse, in lower case, such as com.example.transfer-file."
        return "The id of a service is not valid \(place(in: text)). \(example)"
    }

    private static func place(in text: String) -> String {
        let bytes = text.utf8.count
        guard bytes > 0 else { return "because it is empty" }
        guard bytes <= longestBytes else { return "because it has \(bytes) bytes; the limit is \(longestBytes)" }
        let labels = text.split(separator: ".", omittingEmptySubsequences: false)
        var start = 1
        for label in labels {
            if let fault = fault(of: label, from: start) { return fault }
            start += label.count + 1
        }
        return "because it has one label; it needs two or more, with dots between"
    }

    private static func fault(of label: Substring, from start: Int) -> String? {
        guard let last = label.last else { return "at character \(start): a label is empty" }
        for (offset, character) in label.enumerated() {
            let isLetter = character.isASCII && ("a"..."z").contains(character)
            let place = "at character \(start + offset)"
            if offset == 0, !isLetter { return "\(place): a label begins with a letter from a to z" }
            let isDigit = character.isASCII && ("0"..."9").contains(character)
            guard isLetter || isDigit || character == "-" else {
                return "\(place): a label has the letters a to z, digits and hyphens"
            }
        }
        if last == "-" { return "at character \(start + label.count - 1): a label ends with a letter or a digit" }
        return label.count > 63 ? "at character \(start + 63): a label has up to 63 characters" : nil
    }
}

extension ServiceVersion {
    /// - Throws: ``Refusal`` with ``ErrorCode/serviceIDInvalid``.
    package static func checked(_ text: String) throws(Refusal) -> ServiceVersion {
        guard let version = ServiceVersion(text) else {
            throw Refusal(.serviceIDInvalid, problem(in: text) ?? "The version of a service is not valid.")
        }
        return version
    }

    /// Returns a sentence that describes the fault in the version of a service and names the character; nil if the version is
    /// valid.
    package static func problem(in text: String) -> String? {
        guard ServiceVersion(text) == nil else { return nil }
        let example = "A valid version is one to four numbers with dots between, such as 1.0.0.0."
        return "The version of a service is not valid \(place(in: text)). \(example)"
    }

    private static func place(in text: String) -> String {
        guard !text.isEmpty else { return "because it is empty" }
        var start = 1
        for number in text.split(separator: ".", omittingEmptySubsequences: false) {
            if let fault = fault(of: number, from: start) { return fault }
            start += number.count + 1
        }
        return "because it has more than four numbers"
    }

    private static func fault(of number: Substring, from start: Int) -> String? {
        guard let first = number.first else { return "at character \(start): a number is missing" }
        let other = number.enumerated().first { !$0.element.isASCII || !("0"..."9").contains($0.element) }
        if let other { return "at character \(start + other.offset): a number has the digits 0 to 9" }
        if number.count > 1, first == "0" { return "at character \(start): a number does not begin with 0" }
        return number.count > 9 ? "at character \(start + 9): a number has up to 9 digits" : nil
    }
}
