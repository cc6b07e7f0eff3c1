import CarillonBasics
import Foundation

/// The body of a request to the JSON API: an object with known members.
protocol ControlDocument: Decodable {
    associatedtype Names: CodingKey, CaseIterable
}

extension ControlDocument {
    /// Reads a body. An unknown member is rejected, because it is probably a mistake.
    static func read(_ body: [UInt8]) throws(ControlRefusal) -> Self {
        if let number = NumberOutOfRange(in: body) {
            throw ControlRefusal(400, "The body is not valid: \(number.clauseWithNumber).")
        }
        let data = Data(body)
        guard let object = (try? JSONSerialization.jsonObject(with: data)) as? [String: Any] else {
            throw ControlRefusal(400, "The body must be a JSON object.")
        }
        let names = Set(Names.allCases.map(\.stringValue))
        if let unknown = object.keys.sorted().first(where: { !names.contains($0) }) {
            throw ControlRefusal(
                400, "\"\(unknown)\" is unknown; the known members are \(names.sorted().joined(separator: ", ")).")
        }
        do {
            return try JSONDecoder().decode(Self.self, from: data)
        } catch let DecodingError.keyNotFound(key, _) {
            throw ControlRefusal(400, "\"\(key.stringValue)\" is missing.")
        } catch let DecodingError.typeMismatch(_, context), let DecodingError.valueNotFound(_, context),
            let DecodingError.dataCorrupted(context)
        {
            let name = context.codingPath.map(\.stringValue).joined(separator: ".")
            throw ControlRefusal(400, "The value of \"\(name)\" is not valid: \(context.debugDescription)")
        } catch {
            throw ControlRefusal(400, "The body cannot be read: \(error)")
        }
    }
}

/// Reads the value of an enumeration by its name.
func named<Value: RawRepresentable & CaseIterable>(
    _ text: String, _ name: String, _: Value.Type = Value.self
) throws(ControlRefusal) -> Value where Value.RawValue == String {
    guard let value = Value(rawValue: text) else {
        throw ControlRefusal(
            400, "\"\(name)\" must not be \"\(text)\" but one of \(Value.allCases.map(\.rawValue).joined(separator: ", ")).")
    }
    return value
}
