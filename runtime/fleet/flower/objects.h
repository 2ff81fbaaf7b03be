// Flower's objects: a type, the ids of children and a body as one byte string, whose SHA-256 is the object's id.
//
//   Type SP id,id,... SP decimal length of the body NUL body
//
// Wisp's messages are three objects in a row, a Message, its RecordDict and that one's ConfigRecord. Each is the only
// child of the one before.
#ifndef WISP_RUNTIME_FLEET_FLOWER_OBJECTS_H_
#define WISP_RUNTIME_FLEET_FLOWER_OBJECTS_H_

#include <string>
#include <string_view>

#include "runtime/core/status.h"

namespace wisp::fleet::flower {

// True for 64 digits of lower-case hexadecimal.
bool IsObjectId(std::string_view text);
std::string ObjectId(std::string_view object);

// The object of a type with one child, or with none if `child` is empty.
std::string MakeObject(std::string_view type, std::string_view child, std::string_view body);

// The body of an object that has this id, this type and this only child (none if empty). Otherwise an error.
Result<std::string_view> ReadObject(std::string_view object, std::string_view id, std::string_view type,
                                    std::string_view child);

// The body of the RecordDict that has one record, named "wisp".
std::string WriteRecordDict(std::string_view record_id);
// An error unless `body` names the one record "wisp", with this id.
Status CheckRecordDict(std::string_view body, std::string_view record_id);

}  // namespace wisp::fleet::flower

#endif  // WISP_RUNTIME_FLEET_FLOWER_OBJECTS_H_
