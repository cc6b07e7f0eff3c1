import CarillonBasics

extension Refusal {
    /// Returns a refusal that names the field of a number that is too large for `Double`; nil if the body has no such number.
    package static func numberOutOfRange(in body: [UInt8]) -> Refusal? {
        guard let number = NumberOutOfRange(in: body), !number.path.isEmpty else { return nil }
        let field = number.path.joined(separator: ".").prefix(120)
        return Refusal(.fieldInvalid, "The field \"\(field)\" has a number that is out of range, which ends at 1.8e308.")
    }
}
