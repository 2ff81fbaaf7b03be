#include "runtime/methods/sparse/sparse_batch_gradients.h"

#include <algorithm>

#include "runtime/gradients/form_outer.h"
#include "runtime/layers/weights.h"

namespace wisp {

size_t SparseBatchGradients::OwnRows(const SparseSetup& s) {
  return s.num_negatives == 0 ? 0 : std::min(2 * s.max_length, s.most_set_rows - s.num_negatives);
}

size_t SparseBatchGradients::MaxBlockRows(const SparseSetup& s) {
  return s.num_negatives == 0 ? s.most_set_rows : s.num_negatives;
}

size_t SparseBatchGradients::MostRowFloats(const SparseSetup& s) {
  const SparseLayout layout(s.batch.parameters, s.batch.trained);
  return layout.size(MaxBlockRows(s) + OwnRows(s));
}

namespace {

// Floats for the columns of a head's block that may have to be gathered; and the rows of such a block that pass a norm.
size_t CountColumns(const SparseBatchGradients::SparseSetup& s) {
  const size_t widest = s.batch.norms_head_rows ? kMostBlockRows : kDeviceHeadTile;
  return s.num_negatives == 0 ? s.max_rows * std::min(widest, s.most_set_rows) : 0;
}
size_t CountNormedRows(const SparseBatchGradients::SparseSetup& s) {
  return s.batch.norms_head_rows ? std::min(kMostBlockRows, s.most_set_rows) : 0;
}

}  // namespace

SparseBatchGradients::SparseBatchGradients(const kernels::Device& device, const SparseSetup& setup, const RowSet& rows,
                                           const ClipRule& clip, GridGradientSum& sum)
    : device_(device),
      ops_(device.ops),
      setup_(setup),
      layout_(setup.batch.parameters, setup.batch.trained),
      set_(&rows),
      rows_(device, setup.batch.max_records, MostRowFloats(setup), clip, sum),
      set_rows_(setup.most_set_rows, device.memory),
      inputs_(setup.max_rows, device.memory),
      targets_(is_sampled() ? setup.max_rows : 0, device.memory),
      slots_(setup.batch.max_records * OwnRows(setup), device.memory),
      columns_(CountColumns(setup), device.memory),
      normed_(CountNormedRows(setup) > 0 ? FormOuterScratch(CountNormedRows(setup), layout_.d()) : 0, device.memory),
      normed_rows_(CountNormedRows(setup) * layout_.d(), device.memory),
      normed_rstd_(CountNormedRows(setup), device.memory),
      host_inputs_(inputs_.size()),
      host_targets_(targets_.size()),
      host_slots_(slots_.size()),
      place_of_slot_(is_sampled() ? setup.most_set_rows : 0, -1) {
  own_slots_.reserve(OwnRows(setup));
}

size_t SparseBatchGradients::PlanBytes(const SparseSetup& s) {
  const SparseLayout layout(s.batch.parameters, s.batch.trained);
  const size_t normed = CountNormedRows(s), slots = s.batch.max_records * OwnRows(s),
               targets = s.num_negatives > 0 ? s.max_rows : 0;
  size_t bytes = RecordRows::PlanBytes(s.batch.max_records, MostRowFloats(s));
  for (size_t words : {s.most_set_rows, s.max_rows, targets, slots, CountColumns(s),
                       normed > 0 ? FormOuterScratch(normed, layout.d()) : 0, normed * layout.d(), normed})
    bytes += AlignedArray<float>::AllocatedBytes(words);
  return bytes +
         (s.max_rows + targets + slots + (s.num_negatives > 0 ? s.most_set_rows : 0) + OwnRows(s)) * sizeof(int32_t);
}

size_t SparseBatchGradients::scratch_bytes() const {
  size_t bytes = rows_.size_bytes() + set_rows_.allocated_bytes();
  for (const auto* array : {&inputs_, &targets_, &slots_}) bytes += array->allocated_bytes();
  for (const auto* array : {&columns_, &normed_, &normed_rows_, &normed_rstd_}) bytes += array->allocated_bytes();
  for (const auto* list : {&host_inputs_, &host_targets_, &host_slots_, &place_of_slot_, &own_slots_})
    bytes += list->capacity() * sizeof(int32_t);
  return bytes;
}

void SparseBatchGradients::BeginStep() {
  device_.memory.copy_in(set_rows_.data(), set_->rows().data(), set_->rows().size_bytes());
}

// The place of an item in the row of the record that is being entered: in the block, or among its own rows. -1: the
// item is not in the set.
int32_t SparseBatchGradients::GetRow(int32_t item, size_t b) {
  const int32_t slot = item < 0 ? -1 : set_->slot(item);
  if (slot < static_cast<int32_t>(block_rows())) return slot;
  int32_t& place = place_of_slot_[static_cast<size_t>(slot)];
  if (place < 0) {
    place = static_cast<int32_t>(own_slots_.size());
    own_slots_.push_back(slot);
    host_slots_[b * OwnRows(setup_) + static_cast<size_t>(place)] = slot;
  }
  return static_cast<int32_t>(block_rows()) + place;
}

// Forms the rows of record b, whose positions begin at `first`. Returns the end of its positions.
size_t SparseBatchGradients::FormOwnRows(const Record& record, size_t first, size_t b) {
  for (size_t t = 0; t < record.inputs.size(); ++t) {
    host_inputs_[first + t] = GetRow(record.inputs[t], b);
    if (is_sampled()) host_targets_[first + t] = GetRow(record.targets[t], b);
  }
  for (const int32_t slot : own_slots_) place_of_slot_[static_cast<size_t>(slot)] = -1;
  own_slots_.clear();
  return first + record.inputs.size();
}

void SparseBatchGradients::BeginRecords(Batch records) {
  rows_.Begin(records.size(), layout_.size(block_rows() + OwnRows(setup_)));
  const size_t slots = records.size() * OwnRows(setup_);
  for (size_t i = 0; i < slots; ++i) host_slots_[i] = -1;
  size_t rows = 0;
  for (size_t b = 0; b < records.size(); ++b) rows = FormOwnRows(records[b], rows, b);
  device_.memory.copy_in(inputs_.data(), host_inputs_.data(), rows * sizeof(int32_t));
  if (!is_sampled()) return;
  device_.memory.copy_in(targets_.data(), host_targets_.data(), rows * sizeof(int32_t));
  device_.memory.copy_in(slots_.data(), host_slots_.data(), slots * sizeof(int32_t));
}

void SparseBatchGradients::Outer(const OuterFactor& f) {
  if (!Wants(f.parameter)) return;
  if (f.parameter == 0) return TableOuter(f);
  FormRecordOuters(*ops_, f, rows_.at(layout_.dense(f.parameter) + f.first_row * f.k), rows_.stride(), nullptr);
}

// Handles rows [first_row, first_row + n) of the table. Those in the set lie next to each other there. With a sampled
// softmax the rows are the negatives, which are all in the set.
void SparseBatchGradients::TableOuter(const OuterFactor& f) {
  if (f.ids_N != nullptr) return FormRecordOuters(*ops_, f, rows_.at(layout_.slot(0)), rows_.stride(), normed_.data());
  const std::span<const int32_t> set = set_->rows();
  const auto begin = std::lower_bound(set.begin(), set.end(), static_cast<int32_t>(f.first_row)),
             end = std::lower_bound(begin, set.end(), static_cast<int32_t>(f.first_row + f.n));
  const auto first = static_cast<size_t>(begin - set.begin()), columns = static_cast<size_t>(end - begin);
  if (columns == 0) return;
  const OuterFactor of_set = columns == f.n ? f : RestrictToSet(f, first, columns);
  FormRecordOuters(*ops_, of_set, rows_.at(layout_.slot(first)), rows_.stride(), normed_.data());
}

// The factor restricted to `columns` rows: those of the set from its row `first` on.
OuterFactor SparseBatchGradients::RestrictToSet(const OuterFactor& f, size_t first, size_t columns) {
  const uint32_t* rows = set_rows_.data() + first;
  ops_->gather_columns({.x_RN = f.dy_RN,
                        .ldx = f.lddy,
                        .column_J = reinterpret_cast<const int32_t*>(rows),
                        .first = static_cast<int32_t>(f.first_row),
                        .y_RJ = columns_.data(),
                        .ldy = columns,
                        .rows = f.records.rows,
                        .n = f.n,
                        .columns = columns});
  OuterFactor of_set = f;
  of_set.dy_RN = columns_.data();
  of_set.lddy = of_set.n = columns;
  if (!f.row_norm) return of_set;
  // Pointers to where row 0 of the table would be: `rows` counts from there.
  ops_->copy_rows({.x_RD = f.row_norm.w_NK - f.first_row * f.k,
                   .ldx = f.k,
                   .from_R = rows,
                   .y_RD = normed_rows_.data(),
                   .ldy = f.k,
                   .to_R = nullptr,
                   .rows = columns,
                   .d = f.k});
  ops_->copy_rows({.x_RD = f.row_norm.rstd_N - f.first_row,
                   .ldx = 1,
                   .from_R = rows,
                   .y_RD = normed_rstd_.data(),
                   .ldy = 1,
                   .to_R = nullptr,
                   .rows = columns,
                   .d = 1});
  of_set.row_norm.w_NK = normed_rows_.data();
  of_set.row_norm.rstd_N = normed_rstd_.data();
  return of_set;
}

void SparseBatchGradients::Rows(const RowsFactor& f) {
  if (!Wants(f.parameter)) return;
  if (f.parameter != 0) return FormRecordRows(*ops_, f, rows_.at(layout_.dense(f.parameter)), rows_.stride());
  RowsFactor of_set = f;
  of_set.ids_R = f.of_targets ? targets_.data() : inputs_.data();
  FormRecordRows(*ops_, of_set, rows_.at(layout_.slot(0)), rows_.stride());
}

void SparseBatchGradients::Vector(const VectorFactor& f) {
  if (!Wants(f.parameter)) return;
  FormRecordVectors(*ops_, f, rows_.num_records(), rows_.at(layout_.dense(f.parameter) + f.first), rows_.stride());
}

std::span<const RecordOutcome> SparseBatchGradients::FinishRecords() {
  return rows_.Finish({.slot_BJ = slots_.data(), .slots = OwnRows(setup_), .first = layout_.slot(0), .d = layout_.d()});
}

void SparseBatchGradients::Forget() {
  rows_.Forget();
  for (const auto* array : {&columns_, &normed_})
    ops_->clear({.y = array->data(), .bytes = array->size() * sizeof(float)});
  for (const auto* array : {&inputs_, &targets_, &slots_})
    ops_->clear({.y = array->data(), .bytes = array->size() * sizeof(int32_t)});
  for (auto* list : {&host_inputs_, &host_targets_, &host_slots_}) list->assign(list->size(), 0);
}

}  // namespace wisp
